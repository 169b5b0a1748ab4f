package serve

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// TestServeCollectsRarely reads when the collector means to run next.
func TestServeCollectsRarely(t *testing.T) {
	goal := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	room := reserve()
	if got := goal(); got < 2*heapFloor {
		t.Errorf("the collector runs at %d MiB, want at least %d", got>>20, 2*heapFloor>>20)
	}
	runtime.KeepAlive(room)
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "200")
		if n := len(reserve()); n != 0 {
			t.Errorf("with %s set, %d bytes are reserved", name, n)
		}
		t.Setenv(name, "")
	}
}
