package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// Work that must be done: durable kinds, with the default policy beside an ideal
// that knows no budget and no breaker. Each attempt of each piece has its own
// luck, the same for both.

const (
	pieces = 1000
	atOnce = 10
)

// kind is one kind of durable work.
type kind struct {
	name     string
	attempts int
	// run has pieces done by POST requests to url, which carry the piece's name
	// and attempt, until ctx ends.
	run func(ctx context.Context, url string, p forbear.Policy) error
}

func kinds() []kind {
	return []kind{
		{"webhooks, on SQLite", 5, deliver},
		{"events, base 50 ms", 6, handleEvents},
		{"batch items, base 50 ms", 4, runBatch},
	}
}

// receiver does pieces by luck.
type receiver struct {
	share    float64
	attempts int

	mu      sync.Mutex
	began   time.Time
	sends   int
	arrived map[string]time.Duration
	allowed int // pieces that the attempts allow to be done
	all     chan struct{}
}

const (
	pieceHeader   = "Webhook-Id"
	attemptHeader = "X-Retry-Attempt" // 0 for the first
)

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	time.Sleep(latency)
	id := req.Header.Get(pieceHeader)
	before, _ := strconv.Atoi(req.Header.Get(attemptHeader))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends++
	if fate(id, before+1) < r.share {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if _, known := r.arrived[id]; !known {
		r.arrived[id] = time.Since(r.began)
		if len(r.arrived) == r.allowed {
			close(r.all)
		}
	}
}

// fate is the luck of an attempt, 0 to 1: it fails when that is small.
func fate(id string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
}

func piece(i int) string { return fmt.Sprint("piece-", i) }

// done is what became of the work.
type done struct {
	most    time.Duration // when 99 % of what the attempts allow was done
	missing int
	sends   int
}

const patience = 5 * time.Minute

// work has the pieces done, until all are that the attempts allow.
func work(ctx context.Context, k kind, share float64, p forbear.Policy) (d done, err error) {
	r := &receiver{share: share, attempts: k.attempts, arrived: map[string]time.Duration{}, all: make(chan struct{})}
	for i := range pieces {
		for a := range k.attempts {
			if fate(piece(i), a+1) >= share {
				r.allowed++
				break
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return d, err
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	ended := make(chan error, 1)
	r.began = time.Now()
	go func() { ended <- k.run(ctx, "http://"+l.Addr().String()+"/", p) }()
	select {
	case <-r.all:
		stop()
		err = <-ended
	case err = <-ended:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := make([]time.Duration, 0, len(r.arrived))
	for _, t := range r.arrived {
		at = append(at, t)
	}
	slices.Sort(at)
	if n := r.allowed * 99 / 100; n <= len(at) {
		d.most = at[n-1]
	}
	d.missing, d.sends = r.allowed-len(at), r.sends
	return d, err
}

// post makes one attempt of a piece.
func post(ctx context.Context, url, id string, attempt int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set(pieceHeader, id)
	req.Header.Set(attemptHeader, strconv.Itoa(attempt-1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return forbear.Retryable(err, forbear.Hint{})
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return forbear.Retryable(fmt.Errorf("status %d", resp.StatusCode), forbear.Hint{})
	}
	return nil
}

// printWork runs all kinds with and without protection, all at once, and prints
// the third table. A goal that is missed is an error.
func printWork(ctx context.Context) (missed error) {
	unbound := forbear.Policy{Breaker: breaker.Policy{Disabled: true}}
	shares := []float64{0.15, 0.25, 0.30, 0.40}
	list := kinds()
	got := make([][2]done, len(list)*len(shares))
	errs := make([]error, 2*len(got))
	var wg sync.WaitGroup
	for i, k := range list {
		for j, share := range shares {
			for with, p := range []forbear.Policy{{}, unbound} {
				wg.Go(func() {
					n := i*len(shares) + j
					got[n][with], errs[2*n+with] = work(ctx, k, share, p)
				})
			}
		}
	}
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	fmt.Printf("\n### Work that must be done: %d pieces, %d at a time\n\n| | 503 to | 99 %% of what the attempts allow after | ideally | sends | ideally |\n|---|--:|--:|--:|--:|--:|\n", pieces, atOnce)
	for i, k := range list {
		for j, share := range shares {
			a, b := got[i*len(shares)+j][0], got[i*len(shares)+j][1]
			fmt.Printf("| %s | %.0f %% | %.1f s | %.1f s | %d | %d |\n", k.name, 100*share, a.most.Seconds(), b.most.Seconds(), a.sends, b.sends)
			if a.missing > 0 || a.most > b.most*13/10 || a.sends > b.sends*11/10 {
				missed = errors.Join(missed, fmt.Errorf("%w: %s, %.0f %%: %d missing, 99 %% after %v (ideally %v), %d sends (ideally %d)",
					errMissed, k.name, 100*share, a.missing, a.most, b.most, a.sends, b.sends))
			}
		}
	}
	return missed
}

func tempFile(name string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "forbear-partial")
	return filepath.Join(dir, name), func() { _ = os.RemoveAll(dir) }, err
}
