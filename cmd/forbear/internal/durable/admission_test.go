package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// What one application has under way cannot starve another one, nor the operator.
func TestOneTenantLeavesRoom(t *testing.T) {
	ringtest.NotQuick(t, "it listens")
	root := "Bearer the operator's own token"
	s, _ := start(t, Options{Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	tokens := map[string]string{}
	for _, app := range []string{"acme", "other"} {
		call(t, s, "PUT", "/v1/applications/"+app, `{}`, "Authorization", root)
		tokens[app] = token(t, s, `{"name":"`+app+`","scope":"application","application":"`+app+`"}`, "Authorization", root)
		tokens[app+"2"] = token(t, s, `{"name":"`+app+`2","scope":"read-only","application":"`+app+`"}`, "Authorization", root)
	}
	s.admission.requests.each, s.admission.requests.all = 2, 4
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	// hold has a request under way until its body ends.
	hold := func(auth string) (end func() int) {
		body, w := io.Pipe()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/messages", body)
		req.Header.Set("Authorization", auth)
		done := make(chan int, 1)
		go func() {
			resp, err := server.Client().Do(req)
			if err != nil {
				done <- 0
				return
			}
			_ = resp.Body.Close()
			done <- resp.StatusCode
		}()
		_, _ = io.WriteString(w, `{"payload":1`)
		return func() int { _, _ = io.WriteString(w, `}`); _ = w.Close(); return <-done }
	}
	until := func(n int64) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			s.admission.requests.mu.Lock()
			used := s.admission.requests.used
			s.admission.requests.mu.Unlock()
			if used == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d requests are under way, want %d", used, n)
			}
		}
	}
	get := func(who string, want int) {
		t.Helper()
		w, v := ask(t, s, "GET", "/v1/endpoints", "", "Authorization", who)
		if w.Code != want || want >= 400 && w.Header().Get("Retry-After") == "" || strings.Contains(fmt.Sprint(v["detail"]), "too many requests: ") {
			t.Errorf("got %d %v, want %d", w.Code, v, want)
		}
	}
	ends := []func() int{hold(tokens["acme"]), hold(tokens["acme"])}
	until(2)
	get(tokens["acme"], http.StatusTooManyRequests)
	get(tokens["acme2"], http.StatusTooManyRequests) // they share their part
	get(tokens["other"], http.StatusOK)
	get(root, http.StatusOK)
	ends = append(ends, hold(root), hold(root))
	until(4)
	get(tokens["other"], http.StatusServiceUnavailable)
	get(root, http.StatusServiceUnavailable)
	for _, end := range ends {
		if status := end(); status != http.StatusAccepted && status != http.StatusUnprocessableEntity {
			t.Errorf("a request that was let in got %d", status)
		}
	}
	until(0)
	get(tokens["acme"], http.StatusOK)
	if len(s.admission.requests.by) != 0 {
		t.Errorf("%v is kept of what has ended", s.admission.requests.by)
	}
}

// The bytes of bodies that are being read are bounded; small bodies are not counted.
func TestBodiesHaveRoom(t *testing.T) {
	root := "Bearer the operator's own token"
	s, _ := start(t, Options{Token: "the operator's own token"})
	call(t, s, "PUT", "/v1/applications/acme", `{}`, "Authorization", root)
	acme := token(t, s, `{"name":"acme","scope":"application","application":"acme"}`, "Authorization", root)
	s.admission.bodies.each, s.admission.bodies.all = 100<<10, 200<<10
	body := func(size int) string { return `{"payload":"` + strings.Repeat("x", size) + `"}` }
	for _, c := range []struct {
		auth string
		size int
		want int
	}{{acme, 10 << 10, 202}, {acme, 90 << 10, 202}, {acme, 150 << 10, 429}, {root, 150 << 10, 202}, {root, 250 << 10, 503}, {acme, 90 << 10, 202}} {
		w, v := ask(t, s, "POST", "/v1/messages", strings.Replace(body(c.size), "{", `{"application":"acme",`, 1), "Authorization", c.auth)
		if w.Code != c.want || c.want >= 400 && w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d bytes: got %d %v, want %d", c.size, w.Code, v, c.want)
		}
	}
	if s.admission.bodies.used != 0 || len(s.admission.bodies.by) != 0 {
		t.Errorf("%d bytes are kept of bodies that have ended", s.admission.bodies.used)
	}
}

// What a tenant reads and changes in a second is bounded, each for itself; messages and the
// operator are not.
func TestTenantsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(4)
		for _, c := range []struct {
			rt   route
			who  string
			most int
		}{
			{route{method: "POST", path: "/v1/endpoints/{id}/test"}, "acme", changesOf},
			{route{method: "GET", path: "/v1/redrives"}, "acme", readsOf},
			{route{method: "POST", path: "/v1/redrives"}, "other", changesOf},
			{route{method: "POST", path: "/v1/messages"}, "acme", 10_000},
			{route{method: "POST", path: "/v1/redrives"}, "", 10_000},
		} {
			n, err := 0, error(nil)
			for ; n < 10_000 && err == nil; n++ {
				err = a.pace(c.who, c.rt)
			}
			many, _ := errors.AsType[*tooMany](err)
			if c.most == 10_000 && err != nil || c.most < 10_000 && (n-1 != c.most || many == nil || many.after <= 0 || many.after > time.Second) {
				t.Errorf("%s %s %s: %d were let in, then %v", c.who, c.rt.method, c.rt.path, n-1, err)
			}
		}
		time.Sleep(time.Second)
		if err := a.pace("acme", route{method: "POST", path: "/v1/redrives"}); err != nil {
			t.Errorf("a second later: %v", err)
		}
	})
}

// An application that reads a great deal has a part of the database's connections; others,
// and what the operator does, do not wait behind it.
func TestReadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(4)
		var under, most atomic.Int32
		slow := route{method: http.MethodGet, serve: func(r *http.Request) (int, any, error) {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			return http.StatusOK, nil, nil
		}}
		call := func(ctx context.Context, who string) (took time.Duration, err error) {
			began := time.Now()
			r := httptest.NewRequestWithContext(context.WithValue(ctx, callerKey{}, caller{sqlstore.Token{Application: who}}), http.MethodGet, "/", nil)
			_, _, err = a.looks.pass(r, slow)
			return time.Since(began), err
		}
		var calls sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		for range 50 {
			calls.Go(func() { _, _ = call(ctx, "acme") })
		}
		synctest.Wait()
		if n := under.Load(); n != 2 {
			t.Errorf("%d reads of one application at once", n)
		}
		for _, who := range []string{"other", ""} {
			if took, err := call(t.Context(), who); took != time.Second || err != nil {
				t.Errorf("a read of %q took %v, %v", who, took, err)
			}
		}
		for _, who := range []string{"b", "c", "d"} {
			for range 3 {
				calls.Go(func() { _, _ = call(ctx, who) })
			}
		}
		synctest.Wait()
		if n := under.Load(); n != 3 {
			t.Errorf("%d reads at once", n)
		}
		leave() // who waits may leave
		calls.Wait()
		if _, err := call(t.Context(), "acme"); err != nil {
			t.Error(err)
		}
	})
}
