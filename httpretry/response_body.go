package httpretry

import (
	"io"
	"sync/atomic"
)

// responseBody is the body of a response that was handed over. It ends the attempt when
// it is closed or used up. Like those of net/http it may be closed while it is
// being read.
type responseBody struct {
	io.ReadCloser
	a      *attempt
	stream bool // the timeout covers each read by itself
	done   atomic.Bool
}

// Read gives a stream a whole timeout for each read, and takes the timer away
// while the caller is busy with what it got.
func (b *responseBody) Read(p []byte) (int, error) {
	timed := b.stream && b.a.timer != nil && !b.done.Load()
	if timed {
		b.a.timer.Reset(b.a.limit)
	}
	n, err := b.ReadCloser.Read(p)
	if timed {
		b.a.timer.Stop() // a slow reader is not a server that stalls
	}
	if err != nil {
		if err != io.EOF && !b.done.Load() {
			err = b.a.explain(err)
		}
		b.done.Store(true)
		b.a.end()
	}
	return n, err
}

// Close sets done before anything else, so that the error of a Read under way is
// not explained as a timeout.
func (b *responseBody) Close() error {
	b.done.Store(true)
	err := b.ReadCloser.Close()
	b.a.end()
	return err
}
