package batch

import (
	"container/heap"
	"time"
)

// waiting holds items that have begun and wait, the earliest first. The zero
// value is empty.
type waiting[T any] struct{ list byTime[T] }

// add adds it until the given time.
func (w *waiting[T]) add(it *item[T], until time.Time) {
	it.until = until
	heap.Push(&w.list, it)
}

// take takes the first.
func (w *waiting[T]) take() *item[T] { return heap.Pop(&w.list).(*item[T]) }

// len counts the items, overdue ones included.
func (w *waiting[T]) len() int { return len(w.list) }

// until returns when the wait of the first is over; false when none waits.
func (w *waiting[T]) until() (time.Time, bool) {
	if len(w.list) == 0 {
		return time.Time{}, false
	}
	return w.list[0].until, true
}

// over reports whether the wait of the first is over.
func (w *waiting[T]) over(now time.Time) bool {
	return len(w.list) > 0 && !w.list[0].until.After(now)
}

// byTime implements [heap.Interface].
type byTime[T any] []*item[T]

func (b byTime[T]) Len() int           { return len(b) }
func (b byTime[T]) Less(i, j int) bool { return b[i].until.Before(b[j].until) }
func (b byTime[T]) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byTime[T]) Push(x any)        { *b = append(*b, x.(*item[T])) }

func (b *byTime[T]) Pop() any {
	old := *b
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*b = old[:len(old)-1]
	return last
}
