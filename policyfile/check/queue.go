package check

import "time"

// attempt is one that is due: when, when its call began, how long it waited, and its
// number, from 1. Times count from the windows' epoch.
type attempt struct {
	at, start, waited time.Duration
	number            int
}

// queue is a heap of attempts by time, so that those of different calls interleave as
// they would. It holds values, which container/heap would allocate one by one.
type queue []attempt

// push adds an attempt.
func (q *queue) push(a attempt) {
	*q = append(*q, a)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up].at <= h[i].at {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop takes the earliest attempt out.
func (q *queue) pop() attempt {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next >= last {
			break
		}
		if next+1 < last && h[next+1].at < h[next].at {
			next++
		}
		if h[i].at <= h[next].at {
			break
		}
		h[i], h[next] = h[next], h[i]
		i = next
	}
	*q = h
	return first
}
