package race

import "testing"

// TooSlow skips a test under the race detector, where it would take many times as long and
// show nothing more: why says what shows its races. It is called in the test function itself:
// make test finds it there, and runs the test without the detector.
func TooSlow(t testing.TB, why string) {
	t.Helper()
	if Enabled {
		t.Skipf("too slow under the race detector: %s", why)
	}
}
