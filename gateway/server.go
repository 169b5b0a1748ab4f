package gateway

import (
	"net/http"
	"sync"
	"time"
)

// NewServer returns a server for h with the timeouts of INTG-STD-035: 5 s for
// the headers of a request and 120 s for an idle connection. Bodies may take
// their time, in both directions: the policies bound the calls.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    256 << 10,
	}
}

// bufferSize is that of the buffers through which bodies are copied.
const bufferSize = 32 << 10

// bufferPool keeps them. It stores arrays, so that putting one back does not
// allocate a slice header.
type bufferPool struct{ pool sync.Pool }

// buffers serves all proxies of the process: the pool is as large as the busiest
// moment was, and the collector empties it.
var buffers = bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

// Get and Put implement [httputil.BufferPool].
func (b *bufferPool) Get() []byte  { return b.pool.Get().(*[bufferSize]byte)[:] }
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
