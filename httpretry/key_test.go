package httpretry_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

var uuidV4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestKeys is R-6 on the wire: which key goes out, on how many attempts.
func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		name, method, key string
		mode              forbear.KeyMode
		attempts          int
		sent              string // "uuid" for a key that forbear made
	}{
		{"POST without a key", http.MethodPost, "", forbear.KeyReuse, 1, ""},
		{"PATCH without a key", http.MethodPatch, "", forbear.KeyReuse, 1, ""},
		{"unknown method without a key", "MERGE", "", forbear.KeyReuse, 1, ""},
		{"lower case get is another method", "get", "", forbear.KeyReuse, 1, ""},
		{"PUT without a key", http.MethodPut, "", forbear.KeyReuse, 4, ""},
		{"DELETE without a key", http.MethodDelete, "", forbear.KeyReuse, 4, ""},
		{"POST with a key", http.MethodPost, key, forbear.KeyReuse, 4, key},
		{"unknown method with a key", "MERGE", key, forbear.KeyReuse, 4, key},
		{"64 characters", http.MethodPost, strings.Repeat("k", 64), forbear.KeyReuse, 4, strings.Repeat("k", 64)},
		{"65 characters are no key", http.MethodPost, strings.Repeat("k", 65), forbear.KeyReuse, 1, strings.Repeat("k", 65)},
		{"64 characters in quotes", http.MethodPost, `"` + strings.Repeat("k", 64) + `"`, forbear.KeyReuse, 4, `"` + strings.Repeat("k", 64) + `"`},
		{"65 characters in quotes are no key", http.MethodPost, `"` + strings.Repeat("k", 65) + `"`, forbear.KeyReuse, 1, `"` + strings.Repeat("k", 65) + `"`},
		{"nothing in quotes is no key", http.MethodPost, `""`, forbear.KeyReuse, 1, `""`},
		{"generated in place of nothing in quotes", http.MethodPost, `""`, forbear.KeyGenerate, 4, "uuid"},
		{"white space is no key", http.MethodPost, "  ", forbear.KeyReuse, 1, "  "},
		{"generated for a POST", http.MethodPost, "", forbear.KeyGenerate, 4, "uuid"},
		{"generated for a PATCH", http.MethodPatch, "", forbear.KeyGenerate, 4, "uuid"},
		{"generated in place of an empty one", http.MethodPost, " ", forbear.KeyGenerate, 4, "uuid"},
		{"none is generated for a GET", http.MethodGet, "", forbear.KeyGenerate, 4, ""},
		{"none in place of the caller's", http.MethodPost, key, forbear.KeyGenerate, 4, key},
		{"nor in place of one too long", http.MethodPost, strings.Repeat("k", 65), forbear.KeyGenerate, 1, strings.Repeat("k", 65)},
		{"refused, though there is one", http.MethodPost, key, forbear.KeyRefuse, 1, key},
		{"refused, and none is made", http.MethodPost, "", forbear.KeyRefuse, 1, ""},
		{"refusal is about such methods only", http.MethodPut, key, forbear.KeyRefuse, 4, key},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := fast
			p.Keys = tc.mode
			s := &script{steps: []step{status(503)}}
			req := newRequest(t, tc.method, "http://payments.test/", "payload", tc.key)
			resp, err := over(t, s, p).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			sent := s.requests()
			if len(sent) != tc.attempts {
				t.Errorf("%d attempts, want %d", len(sent), tc.attempts)
			}
			first := sent[0].header.Get(httpretry.HeaderKey)
			for _, r := range sent {
				if got := r.header.Values(httpretry.HeaderKey); r.header.Get(httpretry.HeaderKey) != first || len(got) > 1 {
					t.Errorf("keys %q, the first was %q", got, first)
				}
			}
			if tc.sent == "uuid" && !uuidV4.MatchString(first) || tc.sent != "uuid" && first != tc.sent {
				t.Errorf("key %q, want %q", first, tc.sent)
			}
			if got := req.Header.Get(httpretry.HeaderKey); got != tc.key {
				t.Errorf("the caller's request now has the key %q", got)
			}
			if e, _ := httpretry.Outcome(resp); tc.attempts == 1 && (e.Reason != reason.NoKey || e.Reason.Rule() != "R-6") {
				t.Errorf("the outcome is %v", e)
			}
		})
	}
}

func TestEachCallHasItsOwnKey(t *testing.T) {
	p := fast
	p.Keys = forbear.KeyGenerate
	s := &script{steps: []step{status(200)}}
	rt := over(t, s, p)
	seen := map[string]bool{}
	for range 50 {
		resp, err := rt.RoundTrip(newRequest(t, http.MethodPost, "http://payments.test/", "payload", ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for _, r := range s.requests() {
		seen[r.header.Get(httpretry.HeaderKey)] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d keys for 50 calls", len(seen))
	}
}

// redirector answers everything with a redirect until the path is "/end", and
// records the requests.
type redirector struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newRedirector(t *testing.T, to func(r *http.Request) string) *redirector {
	d := &redirector{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.seen = append(d.seen, r)
		d.mu.Unlock()
		if r.URL.Path != "/end" {
			http.Redirect(w, r, to(r), http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *redirector) values(name string) (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.seen {
		all = append(all, r.Header.Get(name))
	}
	return all
}

// TestRedirects: the same host is the same operation and keeps the key that was
// made for it; another host gets neither that key nor the credentials.
func TestRedirects(t *testing.T) {
	other := newRedirector(t, func(*http.Request) string { return "/end" })
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) // another host, not only another port
	here := newRedirector(t, func(r *http.Request) string {
		if r.URL.Path == "/away" {
			return elsewhere + "/end"
		}
		return "/end"
	})
	p := fast
	p.Keys = forbear.KeyGenerate
	client := &http.Client{Transport: httpretry.NewTransport(nil, quiet(t, p))}
	t.Cleanup(client.CloseIdleConnections)
	post := func(url string) {
		t.Helper()
		req := newRequest(t, http.MethodPost, url, "payload", "")
		req.Header.Set("Authorization", "Bearer of-the-caller")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	post(here.URL + "/start")
	keys := here.values(httpretry.HeaderKey)
	if len(keys) != 2 || !uuidV4.MatchString(keys[0]) || keys[0] != keys[1] {
		t.Errorf("on the same host the keys are %q", keys)
	}
	post(here.URL + "/away")
	first, second := here.values(httpretry.HeaderKey)[2], other.values(httpretry.HeaderKey)
	if len(second) != 1 || second[0] == first || !uuidV4.MatchString(second[0]) {
		t.Errorf("the other host got the key %q after %q", second, first)
	}
	if got := other.values("Authorization"); got[0] != "" {
		t.Errorf("the other host got the Authorization %q", got)
	}
}
