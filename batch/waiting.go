package batch

import (
	"slices"
	"time"
)

// waiting holds items that have begun and wait, the earliest first. The zero
// value is empty.
type waiting[T any] []*item[T]

// add adds it until the given time, behind those that wait as long: an item that was a
// probe is not at once the next one.
func (w *waiting[T]) add(it *item[T], until time.Time) {
	it.until = until
	i := len(*w)
	for i > 0 && (*w)[i-1].until.After(until) {
		i--
	}
	*w = slices.Insert(*w, i, it)
}

// take takes the first.
func (w *waiting[T]) take() *item[T] {
	it := (*w)[0]
	(*w)[0] = nil
	*w = (*w)[1:]
	return it
}

// over reports whether the wait of the first is over.
func (w waiting[T]) over(now time.Time) bool { return len(w) > 0 && !w[0].until.After(now) }
