package httpretry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/reason"
)

// TestTokenIsRefreshedOnce covers R-9 over the wire: one refresh after a 401,
// outside the count of retries, and never a weaker credential.
func TestTokenIsRefreshedOnce(t *testing.T) {
	var served []string
	api, n := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		served = append(served, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	tokens := []string{"Bearer old", "Bearer new"}
	next := func() *credential.Cache {
		i := -1
		return credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
			i = min(i+1, len(tokens)-1)
			if tokens[i] == "revoked" {
				return credential.Token{}, credential.ErrRevoked
			}
			return credential.Token{Value: tokens[i]}, nil
		}))
	}
	resp, _, err := send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(next()))
	if err != nil || resp.StatusCode != http.StatusOK || n.Load() != 2 {
		t.Fatalf("%d requests with %v, %v; want 200 after 2", n.Load(), served, err)
	}

	n.Store(0)
	tokens = []string{"Bearer old", "Bearer old too"}
	resp, _, err = send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(next()))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || n.Load() != 2 {
		t.Errorf("still refused: %d requests, %v; want the 401 after 2", n.Load(), err)
	}

	n.Store(0)
	tokens = []string{"Bearer old", "revoked"}
	_, _, err = send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(next()))
	if !errors.Is(err, credential.ErrRefreshFailed) || !errors.Is(err, credential.ErrRevoked) || n.Load() != 1 {
		t.Errorf("refresh fails: %d requests, %v; want 1 and the refresh's own error", n.Load(), err)
	}

	n.Store(0)
	tokens = []string{"Bearer old", "Basic weaker"}
	_, _, err = send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(next()))
	if !errors.Is(err, credential.ErrWeak) || n.Load() != 1 {
		t.Errorf("weaker credential: %d requests, %v; want 1 and ErrWeakCredential", n.Load(), err)
	}
}

// TestARevokedTokenCostsNoCall: forty calls under way with a revoked token are each
// sent again with the one that replaces it, though the budget allows no retry at all.
func TestARevokedTokenCostsNoCall(t *testing.T) {
	const calls = 40
	for _, tc := range []struct {
		name string
		good string // the token that the server takes
		want int
	}{
		{"the next token is good", "Bearer 2", http.StatusOK},
		{"every token is refused", "", http.StatusUnauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ringtest.NotQuick(t, "starts a server")
			var met sync.WaitGroup // the server refuses the first token once all calls have brought it
			met.Add(calls)
			api, sends := faulty(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer 1" {
					met.Done()
					met.Wait()
				}
				if r.Header.Get("Authorization") != tc.good {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			var fetched atomic.Int64
			c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
				return credential.Token{Value: fmt.Sprint("Bearer ", fetched.Add(1))}, nil
			}))
			r := quiet(t, fast, forbear.WithBudget(budget.NewTokenBucket(0, 0)))
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: httpretry.NewTransport(transport, r, httpretry.WithCredentials(c))}
			var got [calls]int
			var all sync.WaitGroup
			for i := range got {
				all.Go(func() {
					if resp, err := client.Get(api.URL); err == nil {
						got[i] = resp.StatusCode
						_ = resp.Body.Close()
					}
				})
			}
			all.Wait()
			for i, status := range got {
				if status != tc.want {
					t.Errorf("call %d: got %d, want %d", i, status, tc.want)
				}
			}
			if n := sends.Load(); n != 2*calls {
				t.Errorf("%d sends of %d calls, want one more for each", n, calls)
			}
		})
	}
}

func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	var elsewhere atomic.Pointer[string]
	other, _ := faulty(t, func(_ http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		elsewhere.Store(&auth)
	})
	api, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		return credential.Token{Value: "Bearer secret"}, nil
	}))
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t), httpretry.WithCredentials(c))}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := elsewhere.Load(); got == nil || *got != "" {
		t.Errorf("the other origin was sent Authorization %v", got)
	}
}

// TestTheRefusedTokenIsNotSentAgain: a source that has nothing newer is no
// reason to repeat the request; the caller gets the 401 as it came.
func TestTheRefusedTokenIsNotSentAgain(t *testing.T) {
	api, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not you", http.StatusUnauthorized)
	})
	var asked atomic.Int64
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		asked.Add(1)
		return credential.Token{Value: "Bearer same"}, nil
	}))
	resp, _, err := send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, resp.Body); resp.StatusCode != http.StatusUnauthorized || got != "not you\n" {
		t.Errorf("got %d %q, want the 401 unread", resp.StatusCode, got)
	}
	if e, ok := httpretry.Outcome(resp); !ok || e.Reason != reason.Unauthorized {
		t.Errorf("outcome %v, want unauthorized", e)
	}
	if n.Load() != 1 || asked.Load() != 2 {
		t.Errorf("%d requests, %d tokens fetched; want 1 and 2", n.Load(), asked.Load())
	}
}

// TestAFailedRefreshIsTriedOnce: the source is not asked again by the attempt
// that cannot be made.
func TestAFailedRefreshIsTriedOnce(t *testing.T) {
	api, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	var asked atomic.Int64
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		if asked.Add(1) > 1 {
			return credential.Token{}, errors.New("the token service is down")
		}
		return credential.Token{Value: "Bearer old"}, nil
	}))
	_, _, err := send(t, newRequest(t, http.MethodGet, api.URL, "", ""), fast, httpretry.WithCredentials(c))
	if !errors.Is(err, credential.ErrRefreshFailed) || n.Load() != 1 || asked.Load() != 2 {
		t.Errorf("%d requests, %d tokens fetched, %v; want 1, 2 and a failed refresh", n.Load(), asked.Load(), err)
	}
}

// TestNoRefreshElsewhere: after a redirect to another origin, which gets no
// token, a 401 is not answered by sending the request once more without one.
func TestNoRefreshElsewhere(t *testing.T) {
	other, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	api, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		return credential.Token{Value: "Bearer secret"}, nil
	}))
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t), httpretry.WithCredentials(c))}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || n.Load() != 1 {
		t.Errorf("status %d after %d requests, want the 401 after 1", resp.StatusCode, n.Load())
	}
}

// TestTokensStayAwayFromDetours: a redirect that leads back to the origin comes
// from somebody else, who chose where to.
func TestTokensStayAwayFromDetours(t *testing.T) {
	var seen []string
	var api, other *httptest.Server
	api, _ = faulty(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.URL.Path == "/" {
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
		}
	})
	other, _ = faulty(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, api.URL+"/chosen", http.StatusFound)
	})
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		return credential.Token{Value: "Bearer secret"}, nil
	}))
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t), httpretry.WithCredentials(c))}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(api.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(seen) != 2 || seen[0] != "/ Bearer secret" || seen[1] != "/chosen " {
		t.Errorf("the origin was sent %q", seen)
	}
}

// TestWaitingForATokenIsPartOfTheCall: the total is hard, also where the
// token service does not answer.
func TestWaitingForATokenIsPartOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := credential.New(credential.SourceFunc(func(ctx context.Context) (credential.Token, error) {
			<-ctx.Done()
			return credential.Token{}, ctx.Err()
		}))
		s := &script{steps: []step{status(200)}}
		r := quiet(t, forbear.Policy{Total: 2 * time.Second, PerAttempt: time.Second})
		start := time.Now()
		_, err := httpretry.NewTransport(s, r, httpretry.WithCredentials(c)).
			RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
		if took := time.Since(start); took != 2*time.Second || !errors.Is(err, credential.ErrRefreshFailed) || len(s.requests()) != 0 {
			t.Errorf("after %v: %v, %d requests; want a failed refresh after 2s", took, err, len(s.requests()))
		}
		time.Sleep(time.Minute) // until the fetch has ended, too
	})
}
