//go:build unix

package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
)

// BenchmarkProxy sets the gateway beside a bare ReverseProxy with the same
// transport. cpu-us/op is what to compare: the processor time of the whole
// process, client and upstream included, which both have alike.
func BenchmarkProxy(b *testing.B) {
	payload := make([]byte, 128)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(payload)
	}))
	defer up.Close()
	target := parse(b, up.URL)

	b.Run("upstream alone", func(b *testing.B) { load(b, up.URL) })
	for name, pool := range map[string]httputil.BufferPool{"bare": nil, "bare with buffers": &buffers{}} {
		b.Run(name, func(b *testing.B) {
			bare := http.DefaultTransport.(*http.Transport).Clone()
			bare.MaxIdleConnsPerHost = 512
			srv := httptest.NewServer(&httputil.ReverseProxy{
				Rewrite: func(pr *httputil.ProxyRequest) {
					pr.SetURL(target)
					pr.SetXForwarded()
				},
				Transport:  bare,
				BufferPool: pool,
			})
			defer srv.Close()
			load(b, srv.URL)
		})
	}
	observed, err := forbear.New("orders", forbear.Policy{}, forbear.WithObserver(gateway.NewStats("checkout").Observer()))
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]*forbear.Retryer{"gateway": retryer(b, quick), "gateway with stats": observed} {
		b.Run(name, func(b *testing.B) {
			g, err := gateway.New(gateway.Config{Routes: []gateway.Route{{Prefix: "/", Target: target, Retryer: r}}})
			if err != nil {
				b.Fatal(err)
			}
			srv := httptest.NewUnstartedServer(nil)
			srv.Config = gateway.NewServer(g)
			srv.Start()
			defer srv.Close()
			load(b, srv.URL)
		})
	}
}

// buffers is a pool for the bare proxy, so that it has what the gateway has.
type buffers struct{ pool sync.Pool }

func (p *buffers) Get() []byte {
	if b, ok := p.pool.Get().(*[32 << 10]byte); ok {
		return b[:]
	}
	return make([]byte, 32<<10)
}

func (p *buffers) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

func load(b *testing.B, address string) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func() {
		resp, err := client.Get(address + "/x")
		if err != nil {
			b.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	get()
	b.ReportAllocs()
	before := processor(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			get()
		}
	})
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// processor returns the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowd makes the dependencies of a large service: 10,000 endpoints and 200 others, each
// with a past, a few in trouble.
func crowd(t testing.TB) *gateway.Stats {
	stats, _, made := watched(t)
	for i := range 10200 {
		name := fmt.Sprintf("webhook:ep_%05d", i)
		if i >= 10000 {
			name = fmt.Sprintf("dependency-%03d", i)
		}
		r := made(name, forbear.Policy{})
		_ = r.Do(t.Context(), good)
		if i%100 == 0 {
			r.Breaker().Follow(time.Now())
		}
	}
	stats.Sample(time.Now().Add(time.Minute))
	return stats
}

func BenchmarkStatusOfTenThousand(b *testing.B) {
	stats := crowd(b)
	now := time.Now().Add(time.Minute)
	for _, q := range []gateway.StatusQuery{{ByTrouble: true, Limit: 50}, {ByTrouble: true, Limit: 50, Name: "ep_01"}, {Limit: 50}, {}} {
		b.Run(fmt.Sprintf("%+v", q), func(b *testing.B) {
			b.ReportAllocs()
			size, before := 0, processor(b)
			for b.Loop() {
				body, err := json.Marshal(stats.Page(now, q))
				if err != nil {
					b.Fatal(err)
				}
				size = len(body)
			}
			b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
