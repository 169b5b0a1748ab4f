package storetest

import (
	"testing"
	"time"
)

// Dispatchers are counted while they say that they are at work, and no longer than that.
func testHeartbeat(t *testing.T, s Store) {
	beat := func(owner string, lease time.Duration, want int) {
		t.Helper()
		if n := must(s.Heartbeat(t.Context(), owner, lease))(t); n != want {
			t.Errorf("%s counts %d, want %d", owner, n, want)
		}
	}
	beat("a", time.Minute, 1)
	beat("b", time.Minute, 2)
	beat("a", time.Minute, 2)
	beat("dies", time.Minute, 3)
	must(s.Heartbeat(t.Context(), "dies", time.Millisecond))(t)
	time.Sleep(5 * time.Millisecond)
	beat("b", time.Minute, 2)
	check(t, s.Leave(t.Context(), "a"))
	check(t, s.Leave(t.Context(), "a"))
	beat("b", time.Minute, 1)
	parallel(8, func(int) {
		for range 10 {
			must(s.Heartbeat(t.Context(), "c", time.Minute))(t)
			must(s.Heartbeat(t.Context(), "dies", time.Microsecond))(t)
		}
	})
}
