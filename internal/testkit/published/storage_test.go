package published

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/httpretry"
)

const (
	resource   = 300 << 10 // bytes of a download: more than is sent before it breaks
	uploadSize = 9 << 20   // bytes of an upload: more than any fault reads
)

// storage is Google's service: to the sends of each trial it does what the faults say, one
// a send, and then responds with 200. The first segment of a path names the trial.
type storage struct {
	mu   sync.Mutex
	left map[string][]string
}

func (s *storage) next(path string) string {
	trial, _, _ := strings.Cut(path[1:], "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left[trial]
	if len(left) == 0 {
		return ""
	}
	s.left[trial] = left[1:]
	return left[0]
}

// met reports whether all faults of a trial have been met.
func (s *storage) met(trial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.left[trial]) == 0
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, after, _ := strings.Cut(s.next(r.URL.Path), "@")
	kib, _ := strconv.Atoi(strings.TrimSuffix(after, "K"))
	switch status, _ := strconv.Atoi(fault); {
	case status != 0 && kib > 0:
		_, _ = io.CopyN(io.Discard, r.Body, int64(kib)<<10)
		w.WriteHeader(status)
	case status != 0:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
	case fault == "reset":
		_, _ = io.Copy(io.Discard, r.Body)
		hangUp(w)
	case fault == "broken":
		w.Header().Set("Content-Length", strconv.Itoa(resource))
		_, _ = w.Write(make([]byte, max(kib, 1)<<10))
		_ = http.NewResponseController(w).Flush()
		hangUp(w)
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, resource))
	}
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// mode is a way to use forbear.
type mode struct {
	name    string
	policy  forbear.Policy
	gateway bool
	// say is what the program says of a call.
	say func(context.Context, *trial) context.Context
	// repeats reports whether a failure of the call that may go away is retried.
	repeats func(*trial) bool
}

func byMethod(t *trial) bool { return !t.needsKey() }

var modes = []mode{
	{name: "Google storage: `httpretry`, default", repeats: byMethod},
	{name: "Google storage: `httpretry`, `KeyGenerate`", policy: forbear.Policy{Keys: forbear.KeyGenerate}, repeats: func(*trial) bool { return true }},
	{name: "Google storage: `httpretry`, `Policy.Idempotent`", policy: forbear.Policy{Idempotent: true}, repeats: func(*trial) bool { return true }},
	{
		name: "Google storage: `httpretry`, a word a call", repeats: func(t *trial) bool { return t.repeat },
		say: func(ctx context.Context, t *trial) context.Context {
			if t.repeat {
				return forbear.Idempotent(ctx)
			}
			return forbear.WithMaxRetries(ctx, 0)
		},
	},
	{name: "Google storage: gateway, default", gateway: true, repeats: func(t *trial) bool { return byMethod(t) && !t.large() }},
}

// rule returns why the trial comes out in another way than its authors expect, "" if it
// does not.
func (m *mode) rule(t *trial) string {
	repeats := m.repeats(t)
	switch {
	case t.inBody():
		return "broken body (R-4)"
	case t.final() || repeats == t.repeat:
		return ""
	case repeats && t.needsKey():
		return "`POST` or `PATCH`, as the policy says"
	case repeats:
		return "`PUT` or `DELETE` (R-6)"
	case t.needsKey():
		return "`POST` or `PATCH` without a key (R-6)"
	}
	return "body over 64 KiB"
}

// count runs the trials in the mode. Each has a dependency of its own.
func (m *mode) count(t *testing.T) *tally {
	var c tally
	service := &storage{left: map[string][]string{}}
	server := httptest.NewServer(service)
	defer server.Close()
	all, retryers := trials(), make([]*forbear.Retryer, 0, len(trials()))
	policy := m.policy
	policy.Backoff = forbear.Backoff{Base: time.Microsecond, Cap: time.Microsecond}
	for i := range all {
		service.left[strconv.Itoa(i)] = all[i].faults
		retryers = append(retryers, forbear.Must(forbear.New("storage", policy, forbear.WithoutLog())))
	}
	address := server.URL
	if m.gateway {
		front := httptest.NewServer(gatewayTo(t, address, retryers))
		defer front.Close()
		address = front.URL
	}
	for i := range all {
		ctx := t.Context()
		if m.say != nil {
			ctx = m.say(ctx, &all[i])
		}
		base := &http.Transport{}
		client := &http.Client{Transport: base, Timeout: 20 * time.Second}
		if !m.gateway {
			client.Transport = httpretry.NewTransport(base, retryers[i])
		}
		number := strconv.Itoa(i)
		err := all[i].call(ctx, client, address+"/"+number)
		c.add(t, all[i].String(), (err == nil) == all[i].succeed && service.met(number), m.rule(&all[i]), err)
		base.CloseIdleConnections()
	}
	return &c
}

// call returns nil when the call succeeds, body and all.
func (t *trial) call(ctx context.Context, client *http.Client, address string) error {
	var body io.Reader
	switch {
	case t.large():
		body = bytes.NewReader(make([]byte, uploadSize))
	case t.verb != http.MethodGet && t.verb != http.MethodDelete:
		body = strings.NewReader(`{"kind":"storage#test"}`)
	}
	req, err := http.NewRequestWithContext(ctx, t.verb, address+"/storage/v1/"+t.name, body)
	if err != nil {
		return err
	}
	if t.conditional {
		req.Header.Set("If-Match", `"1"`)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// gatewayTo returns a gateway with a route for each trial.
func gatewayTo(t *testing.T, address string, retryers []*forbear.Retryer) *gateway.Gateway {
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := gateway.Config{Logger: slog.New(slog.DiscardHandler)}
	for i, r := range retryers {
		c.Routes = append(c.Routes, gateway.Route{Prefix: "/" + strconv.Itoa(i), KeepPrefix: true, Target: target, Retryer: r})
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
