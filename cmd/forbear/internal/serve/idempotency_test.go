package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/keys"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/policyfile"
)

// ledger is a service that writes down what it is asked to do before anything
// goes wrong, as the path says.
type ledger struct {
	mu     sync.Mutex
	booked map[string]int // by key
	n      atomic.Int64
}

func newLedger(t *testing.T) (*ledger, string) {
	t.Helper()
	l := &ledger{booked: map[string]int{}}
	up := httptest.NewUnstartedServer(l)
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	up.Start()
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	return l, up.URL
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	l.booked[r.Header.Get("Idempotency-Key")]++
	l.mu.Unlock()
	switch r.URL.Path {
	case "/cut":
		panic(http.ErrAbortHandler)
	case "/504":
		w.WriteHeader(http.StatusGatewayTimeout)
		return
	case "/slow":
		<-r.Context().Done()
		return
	case "/503":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "booked %d", l.n.Add(1))
}

func (l *ledger) of(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.booked[key]
}

// keyedReply is what a client gets.
type keyedReply struct {
	status   int
	body     string
	replayed bool
}

func postOnce(t *testing.T, url, key string, headers ...string) keyedReply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return keyedReply{resp.StatusCode, string(text), resp.Header.Get("Idempotent-Replayed") == "true"}
}

func ingressPolicy(url, options string) string {
	return "dependencies:\n  payments: {url: '" + url + "'}\ngateway:\n  listen: 127.0.0.1:0\n  routes:\n    - prefix: /pay\n      dependency: payments\n      idempotency: " + options + "\n"
}

// What the service did once is done once, whatever becomes of its answer, on
// either database, with and without deliveries, and across a restart.
func TestServeIngress(t *testing.T) {
	for name, args := range map[string][]string{
		"sqlite":            {"--database", filepath.Join(t.TempDir(), "forbear.db")},
		"sqlite alone":      {"--database", filepath.Join(t.TempDir(), "forbear.db"), "--no-delivery"},
		"postgresql":        {"--database", pgtest.Database(t)},
		"postgresql, alone": {"--database", pgtest.Database(t), "--no-delivery"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for timeouts
			l, url := newLedger(t)
			config := clitest.File(t, "policy.yaml", ingressPolicy(url, "{timeout: 2s, wait: 1s}"))
			args := append([]string{"--config", config, "--drain", "100ms"}, args...)
			s := startServe(t, args...)
			me := []string{"X-Principal", "ann"}

			first := postOnce(t, s.base+"/pay/book", "key-ok", me...)
			if first.status != 201 || first.replayed {
				t.Fatalf("got %+v", first)
			}
			for _, path := range []string{"cut", "504", "slow"} {
				key := "key-" + path
				if got := postOnce(t, s.base+"/pay/"+path, key, me...); got.status != 502 && got.status != 504 {
					t.Errorf("%s: got %+v", path, got)
				}
				for range 2 {
					if got := postOnce(t, s.base+"/pay/"+path, key, me...); got.status != 409 || !strings.Contains(got.body, "/outcome-unknown") {
						t.Errorf("%s again: got %+v", path, got)
					}
				}
				if n := l.of(key); n != 1 {
					t.Errorf("%s: booked %d times", path, n)
				}
			}
			// The service's own word that nothing happened frees the key.
			for range 2 {
				if got := postOnce(t, s.base+"/pay/503", "key-503", me...); got.status != 503 || got.replayed {
					t.Errorf("got %+v", got)
				}
			}
			for what, got := range map[string]keyedReply{
				"no key":       postOnce(t, s.base+"/pay/book", "", me...),
				"no principal": postOnce(t, s.base+"/pay/book", "key-ok"),
				"other":        postOnce(t, s.base+"/pay/book?x=1", "key-ok", me...),
				"another's":    postOnce(t, s.base+"/pay/book", "key-ok", "X-Principal", "bob"),
			} {
				if want := map[string]int{"no key": 400, "no principal": 401, "other": 422, "another's": 201}[what]; got.status != want || got.replayed {
					t.Errorf("%s: got %+v, want %d", what, got, want)
				}
			}
			if code := s.stop(); code != 0 {
				t.Fatalf("exit code %d: %s", code, s.log)
			}
			s = startServe(t, args...)
			if again := postOnce(t, s.base+"/pay/book", "key-ok", me...); again.status != 201 || !again.replayed || again.body != first.body {
				t.Errorf("after a restart: got %+v, want %+v replayed", again, first)
			}
		})
	}
}

// The records end with serve also where its context does not: another process has taken
// over then.
func TestIngressEndsByItself(t *testing.T) {
	s := &server{watch: &watch{}, log: slog.New(slog.DiscardHandler)}
	s.delivery.options.Database = filepath.Join(t.TempDir(), "forbear.db")
	s.file = &policyfile.File{}
	s.file.Gateway.Routes = []policyfile.Route{{Idempotency: policyfile.Ingress{On: true}}}
	if err := s.startIngress(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.ingress.own == nil {
		t.Fatal("no database was opened")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.ingress.stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("what sweeps the records goes on")
	}
	s.ingress.records.Store = nil
	if err := s.openRecords(s.file); err != nil || s.ingress.records.Store != nil {
		t.Errorf("a reload after the end opened them again: %v", err)
	}
}

// A route that gains keys by a reload honors them, and an operator settles what
// is unknown, from beside.
func TestServeIngressReload(t *testing.T) {
	l, url := newLedger(t)
	db := filepath.Join(t.TempDir(), "forbear.db")
	config := clitest.File(t, "policy.yaml", ingressPolicy(url, "off"))
	admin := closed(t)
	s := startServe(t, "--config", config, "--database", db, "--reload-every", "10ms", "--no-delivery", "--admin", strings.TrimPrefix(admin, "http://"))
	if got := postOnce(t, s.base+"/pay/book", "k1"); got.status != 201 || got.replayed {
		t.Fatalf("got %+v", got)
	}
	if err := os.WriteFile(config, []byte(ingressPolicy(url, "{principal: single, required: false}")), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reload", func() bool { return strings.Contains(s.log.String(), "the policy file is in charge") })
	for i := range 2 {
		if got := postOnce(t, s.base+"/pay/book", "k2"); got.status != 201 || got.replayed != (i > 0) {
			t.Errorf("%d: got %+v", i, got)
		}
	}
	if got := postOnce(t, s.base+"/pay/book", ""); got.status != 201 {
		t.Errorf("without a key, which is not required: got %+v", got)
	}
	postOnce(t, s.base+"/pay/cut", "k3")
	for _, want := range []string{
		`idempotency_requests_total{dependency="payments",result="executed",service=""} 2`,
		`idempotency_requests_total{dependency="payments",result="replayed",service=""} 1`,
		`idempotency_run_duration_seconds_count{dependency="payments",service=""} 2`,
		`idempotency_held_keys{kind="request",service=""} 1`,
	} {
		eventually(t, want+" in the metrics", func() bool {
			_, page := status(t, "GET", admin+"/metrics", "")
			return strings.Contains(page, want)
		})
	}
	list := clitest.Run(t, keys.Command(), "", "list", "--database", db, "-o", "json")
	var held struct{ Scope, Key, Operation string }
	if err := json.Unmarshal([]byte(list.Out), &held); err != nil || held.Scope != "payments/127.0.0.1/pay  all" || held.Operation != "POST /pay/cut" {
		t.Fatalf("keys list: %+v", list)
	}
	if got := clitest.Run(t, keys.Command(), "", "settle", "--database", db, "--done", "201", "--why", "in the ledger", held.Scope, held.Key); got.Code != cli.ExitOK {
		t.Fatalf("keys settle: %+v", got)
	}
	if got := postOnce(t, s.base+"/pay/cut", "k3"); got.status != 201 || !got.replayed || l.of("k3") != 1 {
		t.Errorf("settled as done: got %+v, booked %d times", got, l.of("k3"))
	}
}

// The caller comes from a token, by keys in a file beside the policy.
func TestServeIngressJWT(t *testing.T) {
	_, url := newLedger(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	config := clitest.File(t, "policy.yaml", ingressPolicy(url, "{principal: {jwt: {keys: id.pem, claim: tenant, audience: pay}}}"))
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "id.pem"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	token := func(tenant string, issued time.Time) string {
		signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(
			fmt.Appendf(nil, `{"tenant":%q,"aud":"pay","iat":%d,"exp":%d}`, tenant, issued.Unix(), issued.Add(time.Hour).Unix()))
		sum := sha256.Sum256([]byte(signed))
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		sig := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		return "Bearer " + signed + "." + base64.RawURLEncoding.EncodeToString(sig)
	}
	s := startServe(t, "--config", config, "--database", filepath.Join(t.TempDir(), "forbear.db"), "--no-delivery")
	now := time.Now()
	for _, step := range []struct {
		name, token string
		status      int
		replayed    bool
	}{
		{"first", token("t1", now), 201, false},
		{"a refreshed token is the same caller", token("t1", now.Add(time.Minute)), 201, true},
		{"another tenant", token("t2", now), 201, false},
		{"expired", token("t1", now.Add(-2*time.Hour)), 401, false},
		{"none", "", 401, false},
		{"not signed", token("t1", now)[:60], 401, false},
	} {
		if got := postOnce(t, s.base+"/pay/book", "k", "Authorization", step.token); got.status != step.status || got.replayed != step.replayed {
			t.Errorf("%s: got %+v", step.name, got)
		}
	}
}

func TestServeIngressFaults(t *testing.T) {
	config := clitest.File(t, "policy.yaml", ingressPolicy("http://127.0.0.1:9", "{principal: {jwt: {keys: gone.pem}}}"))
	got := clitest.Run(t, Command(), "", "--config", config, "--no-delivery")
	if want := config + ":8:20: jwt.keys: open "; got.Code != cli.ExitUsage || !strings.Contains(got.Errors, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
	bad := clitest.File(t, "policy.yaml", ingressPolicy("http://127.0.0.1:9", "{retention: 1h}"))
	got = clitest.Run(t, Command(), "", "--config", bad, "--no-delivery")
	if want := bad + ":8:32: idempotency.retention 1h is under 24h"; got.Code != cli.ExitUsage || !strings.HasPrefix(got.Errors, want) || !strings.Contains(got.Errors, "(R-6)") {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// The commands of the guide do what it says, each sent twice.
func TestServeIngressGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guides/idempotency-gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--listen", "127.0.0.1:0", "--database", filepath.Join(t.TempDir(), "forbear.db"))
	want := map[string][2]keyedReply{
		"/once/flaky/delay/2s": {{status: 200}, {status: 200, replayed: true}},
		"/once/flaky/reset":    {{status: 502}, {status: 409}},
	}
	found, done := 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok || !strings.HasPrefix(line, "curl ") || done[line] {
			continue
		}
		done[line] = true
		args := clitest.Words(line)
		address := args[len(args)-1]
		path := strings.TrimPrefix(address, "http://127.0.0.1:8080")
		replies, ok := want[path]
		if !ok || args[2] != "-X" || args[3] != "POST" || args[4] != "-H" {
			t.Errorf("no test for %s", line)
			continue
		}
		found++
		name, value, _ := strings.Cut(args[5], ": ")
		for i, r := range replies {
			began := time.Now()
			got := postOnce(t, s.base+path, "", name, value)
			if got.status != r.status || got.replayed != r.replayed {
				t.Errorf("%s, time %d: got %+v, want %+v", line, i+1, got, r)
			}
			// The quickest counts: each would take two seconds if it were not a replay.
			took := time.Since(began)
			for n := 0; r.replayed && took > time.Second && n < 20; n++ {
				began = time.Now()
				postOnce(t, s.base+path, "", name, value)
				took = min(took, time.Since(began))
			}
			if r.replayed && took > time.Second {
				t.Errorf("%s: the replay took %v", line, took)
			}
		}
	}
	if found != len(want) {
		t.Errorf("the guide has %d of %d commands", found, len(want))
	}
}
