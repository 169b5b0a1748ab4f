package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// bareProxy is httputil's reverse proxy with a connection pool of a useful size
// and a pool of copy buffers, without which it is slower than need be. It waits
// for the header of a response as long as the others do, and retries nothing.
func bareProxy(listen, up string, wait time.Duration) error {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 512
	t.ResponseHeaderTimeout = wait
	t.DisableCompression = true
	t.Proxy = nil
	target := &url.URL{Scheme: "http", Host: up}
	return (&http.Server{
		Addr:              listen,
		ReadHeaderTimeout: 5 * time.Second,
		Handler: &httputil.ReverseProxy{
			Transport:  t,
			BufferPool: &buffers{},
			Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
				w.WriteHeader(http.StatusBadGateway)
			},
		},
	}).ListenAndServe()
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
