package engine

// fifo is a line of tasks. The zero value is empty.
type fifo struct {
	// queue is a ring, whose length is a power of two, or 0 before its first use.
	queue  []int32
	head   int
	length int
}

// enqueue puts task t behind all others, in a larger ring when it is full.
func (f *fifo) enqueue(t int32) {
	if f.length == len(f.queue) {
		bigger := make([]int32, max(64, 2*len(f.queue)))
		n := copy(bigger, f.queue[f.head:])
		copy(bigger[n:], f.queue[:f.head])
		f.queue, f.head = bigger, 0
	}
	f.queue[(f.head+f.length)&(len(f.queue)-1)] = t
	f.length++
}

// dequeue takes the first task out of a line that is not empty.
func (f *fifo) dequeue() int32 {
	t := f.queue[f.head]
	f.head = (f.head + 1) & (len(f.queue) - 1)
	f.length--
	return t
}
