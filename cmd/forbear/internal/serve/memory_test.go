package serve

import (
	"runtime"
	"runtime/debug"
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
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(200 << 20)) // as in a container of 256 MiB
	t.Setenv("GOGC", "")
	room := reserve()
	if got := goal(); got < 2*heapFloor {
		t.Errorf("the collector runs at %d MiB, want at least %d", got>>20, 2*heapFloor>>20)
	}
	runtime.KeepAlive(room)
	debug.SetMemoryLimit(90 << 20)
	if n := len(reserve()); n != 0 {
		t.Errorf("with little memory, %d bytes are reserved", n)
	}
	debug.SetMemoryLimit(200 << 20)
	t.Setenv("GOGC", "200")
	if n := len(reserve()); n != 0 {
		t.Errorf("with GOGC set, %d bytes are reserved", n)
	}
}
