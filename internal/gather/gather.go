// Package gather makes batches of waiting values: while one batch is under way the
// next gathers. What comes alone waits for nothing and goes alone.
package gather

import "sync"

// Batches hands what is added to Do, in batches. The fields are set before the
// first Add. It is safe for concurrent use.
type Batches[T any] struct {
	// Do does a batch of at least one, and returns when it is done.
	Do func(batch []T)
	// Width is how many batches are under way at most. Default 1.
	Width int
	// Max bounds a batch by number, and Bytes by the sum of the sizes that Add
	// was given; one that is larger goes alone. Default: no bound.
	Max, Bytes int

	mu      sync.Mutex
	waiting []sized[T]
	running int
}

// sized is what was added.
type sized[T any] struct {
	v    T
	size int
}

// Add adds v, of a size in bytes, to the batch that goes next: at once, unless as
// many as Width are under way. It does not wait.
func (b *Batches[T]) Add(v T, size int) {
	b.mu.Lock()
	b.waiting = append(b.waiting, sized[T]{v, size})
	start := b.running < max(b.Width, 1)
	if start {
		b.running++
	}
	b.mu.Unlock()
	if start {
		go b.run()
	}
}

// run does batches until nothing waits.
func (b *Batches[T]) run() {
	for batch := b.next(); batch != nil; batch = b.next() {
		b.Do(batch)
	}
}

// next takes the batch that goes next; nil is the end of this run.
func (b *Batches[T]) next() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.running--
		return nil
	}
	var batch []T
	bytes := 0
	for _, w := range b.waiting {
		bytes += w.size
		if len(batch) > 0 && (b.Max > 0 && len(batch) == b.Max || b.Bytes > 0 && bytes > b.Bytes) {
			break
		}
		batch = append(batch, w.v)
	}
	// A new list: what is done is not kept by the old one.
	b.waiting = append([]sized[T](nil), b.waiting[len(batch):]...)
	return batch
}
