package deliverycheck

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Arrival is one complete request that an endpoint received. It is kept for every
// attempt, so it holds a digest and the beginning of the body instead of the whole.
type Arrival struct {
	Tick     int64
	At       time.Time
	Endpoint string // whose server it was
	Path     string
	ID       string
	Retry    string // X-Retry-Attempt
	Status   int    // of the response
	Wire     Sum
	Body     string // its beginning
}

// good reports whether the receiver took the message.
func (a *Arrival) good() bool { return a.Status/100 == 2 }

func (a *Arrival) String() string {
	return "arrival " + strconv.FormatInt(a.Tick, 10) + " at " + a.At.Format("15:04:05.000") + " " + a.Path + " id " + a.ID +
		" wire " + a.Wire.String() + " X-Retry-Attempt " + a.Retry + ": " + strconv.Itoa(a.Status) + "; body " + a.Body
}

// Receiver is an HTTP server for each endpoint. It is safe for concurrent use. Each
// endpoint has its own port, so that a request sent to the wrong address shows.
type Receiver struct {
	clock   *Clock
	failing float64 // the part of the requests that gets 503
	servers []*http.Server
	urls    map[string]string

	mu       sync.Mutex
	random   *rand.Rand
	arrivals []Arrival
	taken    map[Identity]bool
}

// NewReceiver starts the servers on loopback addresses. Close stops them. Failing is
// 0 to 1. Failures make retries, without which order and duplicates would be easy.
func NewReceiver(clock *Clock, endpoints []Endpoint, failing float64, seed uint64) (*Receiver, error) {
	r := &Receiver{clock: clock, failing: failing, urls: map[string]string{}, random: rand.New(rand.NewPCG(seed, 1)), taken: map[Identity]bool{}}
	for _, e := range endpoints {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.Close()
			return nil, err
		}
		s := &http.Server{Handler: r.handler(e)}
		r.servers = append(r.servers, s)
		r.urls[e.ID] = "http://" + l.Addr().String() + path(e.ID)
		go func() { _ = s.Serve(l) }()
	}
	return r, nil
}

// path is where an endpoint is, on its own server: a request to another path went
// to the wrong one.
func path(endpoint string) string { return "/hook/" + endpoint }

// URL returns the address of an endpoint.
func (r *Receiver) URL(endpoint string) string { return r.urls[endpoint] }

// Close stops the servers.
func (r *Receiver) Close() {
	for _, s := range r.servers {
		_ = s.Close()
	}
}

// handler takes every request, whole or not at all. It does not deduplicate, as a
// real receiver should: the duplicates are what is counted.
func (r *Receiver) handler(e Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // cut off by a kill: no complete request arrived
		}
		a := Arrival{
			Endpoint: e.ID, Path: req.URL.Path, ID: req.Header.Get("Webhook-Id"), Retry: req.Header.Get("X-Retry-Attempt"),
			Wire: received(e, req.Header, body), Body: clip(string(body)), Status: http.StatusOK,
		}
		r.record(&a)
		w.WriteHeader(a.Status)
	})
}

// record numbers an arrival, decides about its response and keeps it, under one
// lock: the numbers must have the order of the responses.
func (r *Receiver) record(a *Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.Tick, a.At = r.clock.Tick(), time.Now()
	if r.random.Float64() < r.failing {
		a.Status = http.StatusServiceUnavailable
	}
	if a.good() {
		r.taken[Identity{a.Endpoint, a.ID}] = true
	}
	r.arrivals = append(r.arrivals, *a)
}

// Count returns how many requests arrived.
func (r *Receiver) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// Missing counts those of the identities that the receiver has not taken yet. A 503
// does not count as taken.
func (r *Receiver) Missing(want []Identity) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range want {
		if !r.taken[i] {
			n++
		}
	}
	return n
}

// Arrivals returns everything that arrived, in its order.
func (r *Receiver) Arrivals() []Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Arrival(nil), r.arrivals...)
}
