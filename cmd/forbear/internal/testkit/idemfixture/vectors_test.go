package idemfixture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// TestVectors runs the scenarios over real HTTP against processes of their own,
// on every store that there is, and scenarios of our own, which need every step
// of the format.
func TestVectors(t *testing.T) {
	runEverywhere(t, slices.Concat(scenarios(t).HTTP, more(t, "idempotency.json").HTTP))
}

// scenarios are the conformance vectors, or those that the environment names.
func scenarios(t *testing.T) (d document) {
	t.Helper()
	vectors.Load(t, "idempotency.json", &d)
	if len(d.HTTP) == 0 && len(d.Events) == 0 {
		t.Fatal("no scenarios")
	}
	return d
}

// more are scenarios of our own.
func more(t *testing.T, name string) (d document) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := vectors.Decode(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// runEverywhere runs the scenarios on every kind of store that they ask for.
func runEverywhere(t *testing.T, list []scenario) {
	t.Run("memory", func(t *testing.T) { t.Parallel(); runAll(t, list, "memory") })
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); runAll(t, list, "sqlite") })
	for _, store := range []string{"postgres", "redis"} {
		t.Run(store, func(t *testing.T) {
			ringtest.NotQuick(t, "it starts a server")
			t.Parallel()
			runAll(t, list, store)
		})
	}
}

func runAll(t *testing.T, list []scenario, store string) {
	own := servers{} // for scenarios that halt theirs
	for _, s := range list {
		s.Stores.check(t, s.ID)
		if !slices.Contains(s.Stores, store) {
			continue
		}
		all := t
		t.Run(s.ID, func(t *testing.T) {
			t.Log(s.Name)
			on := servers{}
			if slices.ContainsFunc(s.Steps, func(s step) bool { return s.Do == "store" }) {
				if own == (servers{}) {
					own = ownServers(all, store)
				}
				on = own
			}
			r := &runner{world: newWorld(t, store, on, func(c *Config) {
				if on == (servers{}) {
					c.StoreTimeout = time.Minute // the store is well, if slow on a busy machine
				}
				configure(t, c, s.Steps)
			}), results: map[string][]*result{}}
			for i := range s.Steps {
				r.step(&s.Steps[i])
			}
			r.async.Wait()
			for i := range s.Expect {
				r.check(&s.Expect[i])
			}
			r.checkEffects(s.Effects)
		})
	}
}

// result is what the client saw.
type result struct {
	status    any // a number, "client_timeout" or "connection_error"
	header    http.Header
	body      []byte
	took      time.Duration
	firstByte time.Duration
	maxMS     int
	instance  string
}

func (r *result) replayed() bool { return r.header.Get(idempotency.HeaderReplayed) == "true" }

type runner struct {
	*world
	async   sync.WaitGroup
	lock    sync.Mutex
	results map[string][]*result
}

func (r *runner) step(s *step) {
	t := r.t
	t.Helper()
	switch s.Do {
	case "request":
		if s.Asynchronous {
			r.at(s.Instance)
			r.async.Go(func() { r.send(s.request) })
			return
		}
		r.send(s.request)
	case "parallel":
		r.parallel(s)
	case "wait":
		kind, _, _ := strings.Cut(s.Event, ":")
		if !slices.Contains([]string{"handler_started", "stopped", "done"}, kind) {
			t.Fatalf("event %q is not understood", s.Event)
		}
		r.ledger.await(t, s.Event)
	case "sleep":
		time.Sleep(time.Duration(s.MS) * time.Millisecond)
	case "kill":
		r.signal(s.Instance, syscall.SIGKILL)
	case "start":
		r.at(s.Instance)
	case "resume":
		r.ledger.raise(r.ledger.resumes, s.ID)
	case "advance":
		r.advance(time.Duration(s.By))
	case "clock_skew":
		r.skew(s.Instance, time.Duration(s.By))
	case "client_call":
		r.clientCall(s)
	case "store":
		r.at("A")
		r.store(s.Action)
	case "sweep":
		r.post(r.at("A") + "/_fixture/sweep")
	case "configure":
		_, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{Scope: principal, Retention: time.Duration(s.Retention)}, http.NotFoundHandler())
		if (err != nil) != s.ExpectError {
			t.Errorf("configure %v: %v", time.Duration(s.Retention), err)
		}
	default:
		t.Fatalf("step %q is not understood", s.Do)
	}
}

func (r *runner) parallel(s *step) {
	if s.Request == nil {
		r.t.Fatal("parallel without a request")
	}
	names := s.Instances
	if len(names) == 0 {
		names = []string{s.Request.Instance}
	}
	for _, n := range names {
		r.at(n)
	}
	slots := make(chan struct{}, max(s.Concurrency, 1))
	if s.Concurrency == 0 {
		slots = make(chan struct{}, s.N)
	}
	var wg sync.WaitGroup
	for i := range s.N {
		q := *s.Request
		q.Instance = names[i%len(names)]
		q.Headers = maps.Clone(q.Headers)
		if s.UniqueKeys {
			if q.Headers == nil {
				q.Headers = map[string]string{}
			}
			q.Headers["Idempotency-Key"] = idempotency.NewKey()
		}
		slots <- struct{}{}
		wg.Go(func() {
			r.send(q)
			<-slots
		})
	}
	wg.Wait()
}

// send makes one request and keeps what came of it.
func (r *runner) send(q request) {
	switch at := q.Headers["X-Test-Stop-At"]; at {
	case "", "before_effect", "after_effect":
	default:
		r.t.Errorf("X-Test-Stop-At %q is not understood", at)
		return
	}
	res := r.exchange(q)
	res.maxMS, res.instance = q.MaxMS, q.Instance
	r.lock.Lock()
	r.results[q.ID] = append(r.results[q.ID], res)
	r.lock.Unlock()
	r.ledger.raise(r.ledger.events, "done:"+q.ID)
}

func (r *runner) exchange(q request) *result {
	base := r.at(q.Instance) // starts it, which is no part of the request
	// A connection of its own: a killed server leaves none behind, and nothing
	// is sent twice behind the scenario's back.
	return r.through(&http.Transport{DisableKeepAlives: true}, base, q)
}

// through sends a request to base and reads the answer.
func (r *runner) through(transport http.RoundTripper, base string, q request) *result {
	ctx := r.t.Context()
	if q.ClientTimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(q.ClientTimeoutMS)*time.Millisecond)
		defer cancel()
	}
	req, err := q.build(base)
	if err != nil {
		return &result{status: err.Error()}
	}
	start := time.Now()
	resp, err := transport.RoundTrip(req.WithContext(ctx))
	first := time.Since(start)
	if err != nil {
		return &result{status: failure(ctx), took: first}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	res := &result{status: resp.StatusCode, header: resp.Header, body: text, took: time.Since(start), firstByte: first}
	if err != nil {
		res.status = failure(ctx)
	}
	return res
}

// build makes the request as it goes to base.
func (q *request) build(base string) (*http.Request, error) {
	body := bytes.Repeat([]byte{'x'}, q.BodyBytes)
	if q.Body != nil {
		body = []byte(*q.Body)
	}
	target, err := url.Parse(base + q.Path)
	if err != nil {
		return nil, err
	}
	req := &http.Request{
		Method: q.Method, URL: target, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
	if q.Principal != nil {
		req.Header.Set("X-Principal", *q.Principal)
	}
	req.Header.Set("X-Fixture-Request", q.ID)
	for name, v := range q.Headers {
		req.Header[name] = []string{v} // spelled as it is
	}
	lines := q.ExtraHeaderLines
	if q.RawHeader != nil {
		var line string
		if err := json.Unmarshal(q.RawHeader, &line); err != nil {
			return nil, fmt.Errorf("raw_header is not understood: %w", err)
		}
		name, v, _ := strings.Cut(line, ":")
		lines = append(slices.Clone(lines), [2]string{name, strings.TrimPrefix(v, " ")})
	}
	for _, l := range lines {
		req.Header[l[0]] = append(req.Header[l[0]], l[1])
	}
	return req, nil
}

func failure(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "client_timeout"
	}
	return "connection_error"
}

// checkEffects compares the effects with a number, a list of those allowed, or
// numbers by principal.
func (r *runner) checkEffects(want json.RawMessage) {
	r.t.Helper()
	if len(want) == 0 || string(want) == "null" {
		return
	}
	got := r.effects()
	sum := 0
	for _, n := range got {
		sum += n
	}
	var by map[string]anyOf
	if json.Unmarshal(want, &by) == nil {
		for p, allowed := range by {
			if !allowed.allows(got[p]) {
				r.t.Errorf("%d effects of %s, want %v", got[p], p, allowed)
			}
		}
		return
	}
	var allowed anyOf
	if err := json.Unmarshal(want, &allowed); err != nil {
		r.t.Fatalf("effects %s are not understood", want)
	}
	if !allowed.allows(sum) {
		r.t.Errorf("%d effects, want %v", sum, fmt.Sprint(allowed))
	}
}
