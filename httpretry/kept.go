package httpretry

import (
	"math"
	"sync/atomic"
)

// BodyMemory bounds what transports keep of request bodies together: a limit for each
// body alone does not bound the memory of many requests. The first 64 KiB of each
// body do not count, so that long bodies do not take the retries of short ones. What
// does not fit is sent once, without a wait, and its error says so. The memory is free
// again when the request cannot be sent again.
//
// Make it with [NewBodyMemory]. It is safe for concurrent use; nil sets no bound.
type BodyMemory struct {
	limit int64
	used  atomic.Int64
}

// NewBodyMemory returns a bound of that many bytes. With 0, or less, nothing is kept
// of a body beyond its first 64 KiB.
func NewBodyMemory(bytes int64) *BodyMemory { return &BodyMemory{limit: max(bytes, 0)} }

// Limit returns the bound in bytes.
func (m *BodyMemory) Limit() int64 {
	if m == nil {
		return math.MaxInt64
	}
	return m.limit
}

// Used returns how many bytes are taken now. It may exceed the limit by 64 KiB for each
// request that is between two attempts: what was read of its body must not be lost.
func (m *BodyMemory) Used() int64 {
	if m == nil {
		return 0 // it is not counted
	}
	return m.used.Load()
}

// take takes n bytes, and reports whether they fit. What must be kept is taken anyway.
func (m *BodyMemory) take(n int64, must bool) bool {
	if m == nil || n == 0 || m.used.Add(n) <= m.limit || must {
		return true
	}
	m.used.Add(-n)
	return false
}

// give gives n bytes back.
func (m *BodyMemory) give(n int64) {
	if m != nil && n > 0 {
		m.used.Add(-n)
	}
}

// block is how many bytes of a body are kept in one piece: what grows would be copied
// again and again.
const block = defaultBodyLimit

// kept is the beginning of a body. The zero value is empty.
type kept struct {
	memory *BodyMemory
	size   int
	first  []byte   // up to a block, as long as it has to be
	more   [][]byte // whole blocks, which memory counts
}

// add adds p, and reports whether it fits into the memory. What must be kept is added
// anyway.
func (k *kept) add(p []byte, must bool) bool {
	blocks := max(k.size+len(p)-1, 0) / block // behind the first
	if !k.memory.take(int64(blocks-len(k.more))*block, must) {
		return false
	}
	for len(k.more) < blocks {
		k.more = append(k.more, make([]byte, block))
	}
	if n := min(len(p), block-len(k.first)); n > 0 {
		k.first = append(k.first, p[:n]...)
		k.size, p = k.size+n, p[n:]
	}
	for len(p) > 0 {
		n := copy(k.more[k.size/block-1][k.size%block:], p)
		k.size, p = k.size+n, p[n:]
	}
	return true
}

// from returns bytes that follow offset off, at least one.
func (k *kept) from(off int) []byte {
	if off < len(k.first) {
		return k.first[off:]
	}
	end := min(k.size-off/block*block, block)
	return k.more[off/block-1][off%block : end]
}

// full reports whether another block might not fit.
func (k *kept) full() bool {
	return k.size >= block && k.memory.Used() >= k.memory.Limit()
}

// drop empties it.
func (k *kept) drop() {
	k.memory.give(int64(len(k.more)) * block)
	*k = kept{memory: k.memory}
}
