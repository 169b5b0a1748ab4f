package wait

import (
	"sync"
	"time"
)

// Every calls f after d, and again after what f returns each time, until that is 0 or
// stop is called. stop waits for a call under way. Until the first call it costs a
// timer and no goroutine, so that work that is over sooner hardly pays for it.
func Every(d time.Duration, f func() time.Duration) (stop func()) {
	b := &beat{f: f}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(d, b.run)
	return b.stop
}

type beat struct {
	f func() time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	call  chan struct{} // closed at the end of the call under way
}

func (b *beat) run() {
	ended := make(chan struct{})
	defer close(ended)
	if !b.begin(ended) {
		return
	}
	next := b.f()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.call = nil; next > 0 && !b.over {
		b.timer.Reset(next)
	}
}

func (b *beat) begin(call chan struct{}) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.call = call
	return !b.over
}

func (b *beat) stop() {
	b.mu.Lock()
	b.over = true
	b.timer.Stop()
	call := b.call
	b.mu.Unlock()
	if call != nil {
		<-call
	}
}
