package truth

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm"
)

// headerLuck goes with all attempts of a call: sticky errors hit a call, and not an attempt.
const headerLuck = "Luck"

// caller is a number of processes that call one service. A call comes to one of them by
// chance, or they take turns.
type caller struct {
	w          *world
	method     string
	keys       bool
	turns      bool
	turn       atomic.Int64
	instances  []*http.Client
	transports []*http.Transport
}

// result is how a call ended, and why it was not retried any more.
type result struct {
	good bool
	why  reason.Reason
}

// newCaller makes the processes of a client, each with a Retryer or a loop of its own.
func newCaller(w *world, c storm.Client, instances int, to string) *caller {
	all := &caller{w: w, method: cmp.Or(c.Method, http.MethodGet), keys: c.Key}
	replicas := w.services[to]
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		i, err := strconv.Atoi(host)
		if err != nil {
			return nil, err
		}
		return replicas[i].server.pipes.Dial(ctx, "", "")
	}
	for i := range instances {
		pool := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1 << 16, MaxConnsPerHost: c.Connections}
		all.transports = append(all.transports, pool)
		wire := &cable{pool, w, replicas, float64(i) / float64(instances)}
		policy, err := c.AsPolicy()
		if err != nil {
			panic(err) // the scenario was validated
		}
		var over http.RoundTripper
		if c.Baseline.NoBudget {
			over = &loop{wire, policy.WithDefaults(), c.Baseline.Wait, w.dice}
		} else {
			r := forbear.Must(forbear.New(to, policy, forbear.WithoutLog(), forbear.WithRand(w.dice.float), forbear.WithService(policy.Owner)))
			over = httpretry.NewTransport(wire, r)
		}
		all.instances = append(all.instances, &http.Client{Transport: over})
	}
	return all
}

func (c *caller) close() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

// instance is the process that makes the next call.
func (c *caller) instance() *http.Client {
	if c.turns {
		return c.instances[int(c.turn.Add(1))%len(c.instances)]
	}
	return c.instances[c.w.dice.one(len(c.instances))]
}

// call makes one call with all its attempts.
func (c *caller) call(ctx context.Context) result {
	var body io.Reader
	if c.method == http.MethodPost || c.method == http.MethodPut || c.method == http.MethodPatch {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(ctx, c.method, "http://0/", body)
	if err != nil {
		panic(err)
	}
	luck := strconv.FormatFloat(c.w.dice.float(), 'f', -1, 64)
	req.Header.Set(headerLuck, luck)
	if c.keys {
		req.Header.Set(httpretry.HeaderKey, luck)
	}
	resp, err := c.instance().Do(req)
	if err != nil {
		if e, ok := errors.AsType[*forbear.Error](err); ok {
			return result{why: e.Reason}
		}
		return result{}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if e, ok := httpretry.Outcome(resp); ok {
		return result{why: e.Reason}
	}
	return result{good: resp.StatusCode == http.StatusOK}
}

// cable is the network of one instance. It balances the load: each attempt goes to one of
// the replicas by chance, whose number is the host. While a partition cuts the instance
// off, what it sends vanishes.
type cable struct {
	*http.Transport
	w     *world
	to    []*service
	place float64 // of the instance among the others, from 0 to 1
}

// RoundTrip waits for the end of the attempt when the instance is cut off.
func (c *cable) RoundTrip(req *http.Request) (*http.Response, error) {
	i := 0
	if len(c.to) > 1 {
		i = c.w.dice.one(len(c.to))
		req = req.Clone(req.Context())
		req.URL.Host = strconv.Itoa(i)
	}
	if f, _ := c.w.fault(c.to[i], storm.Partition); c.place < f.Share {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	return c.Transport.RoundTrip(req)
}

// loop retries as programs do without a library: all failures, a number of times, whatever
// other layers do.
type loop struct {
	next   http.RoundTripper
	policy forbear.Policy
	wait   string
	dice   *dice
}

// RoundTrip returns the first good response, or the last failure.
func (l *loop) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		resp, err := l.attempt(req)
		if n == l.policy.MaxRetries || err == nil && resp.StatusCode < 500 || req.Context().Err() != nil {
			return resp, err
		}
		select {
		case <-time.After(l.pause(n)):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

// attempt sends the request once. No response of these servers has a body.
func (l *loop) attempt(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), l.policy.PerAttempt)
	defer cancel()
	resp, err := l.next.RoundTrip(req.Clone(ctx))
	if err == nil {
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, err
}

// pause is the wait after so many retries.
func (l *loop) pause(retries int) time.Duration {
	ceiling := min(l.policy.Backoff.Base<<retries, l.policy.Backoff.Cap)
	switch l.wait {
	case "none":
		return 0
	case "fixed":
		return l.policy.Backoff.Base
	case "exponential":
		return ceiling
	case "equal":
		return ceiling/2 + time.Duration(l.dice.float()*float64(ceiling/2))
	}
	return time.Duration(l.dice.float() * float64(ceiling))
}
