package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/policyfile"
)

// eventually waits for a condition that real sockets or signals bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

// reloadable starts serve over an upstream that counts and fails.
func reloadable(t *testing.T, every string) (s *serving, sends *atomic.Int64, write func(retries, more string)) {
	t.Helper()
	sends = &atomic.Int64{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sends.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(up.Close)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write = func(retries, more string) {
		text := "dependencies:\n  up: {url: '" + up.URL + "', max_retries: " + retries +
			", backoff: {base: 1ms, cap: 2ms}, budget: {min_retries: 10}}\n" + more +
			"gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /, dependency: up}\n"
		// As editors and ConfigMaps do: another file takes the name.
		next := path + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	write("1", "")
	return startServe(t, "--config", path, "--reload-every", every), sends, write
}

func (s *serving) get(t *testing.T) {
	t.Helper()
	resp, err := http.Get(s.base + "/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestReloadOnChange(t *testing.T) {
	s, sends, write := reloadable(t, "20ms")
	if s.get(t); sends.Load() != 2 {
		t.Fatalf("%d sends, want 2", sends.Load())
	}
	write("9", "") // outside R-2's range
	eventually(t, "the refusal", func() bool {
		return strings.Contains(s.log.String(), "the old policy stays") && strings.Contains(s.log.String(), "is outside 1-5 (R-2)")
	})
	if s.get(t); sends.Load() != 4 {
		t.Errorf("%d sends, want 4: the old policy", sends.Load())
	}
	write("3", "")
	eventually(t, "the change", func() bool {
		return strings.Contains(s.log.String(), "a call to up is now tried up to 4 times, it was 2")
	})
	if s.get(t); sends.Load() != 8 {
		t.Errorf("%d sends, want 8: the new policy", sends.Load())
	}
	if code := s.stop(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestReloadOnSIGHUP(t *testing.T) {
	s, sends, write := reloadable(t, "0")
	write("2", "")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change", func() bool { return strings.Contains(s.log.String(), "is now tried up to 3 times") })
	sends.Store(0)
	if s.get(t); sends.Load() != 3 {
		t.Errorf("%d sends, want 3", sends.Load())
	}
}

// What does not change a policy changes nothing.
func TestReloadOfTheSamePolicy(t *testing.T) {
	s, _, write := reloadable(t, "20ms")
	write("1", "profiles: {spare: {total: 5s}}\n")
	eventually(t, "the reload", func() bool { return strings.Contains(s.log.String(), "changes=0") })
}

// A file that is read while it is written may end before its routes. A process that
// delivers could serve it, and would lose them.
func TestReloadKeepsRoutes(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	path := downPolicy(t, up.URL)
	s := startServe(t, "--config", path, "--reload-every", "0", "--admin", "off", "--database", filepath.Join(t.TempDir(), "forbear.db"))
	if err := os.WriteFile(path, []byte("service: checkout\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reload", func() bool { return strings.Contains(s.log.String(), "the policy file has faults") })
	if code, _ := status(t, "GET", s.base+"/search/a", ""); code != 200 || !strings.Contains(s.log.String(), "no longer has a gateway section") {
		t.Errorf("the route responds %d:\n%s", code, s.log)
	}
}

// A dependency whose policy stays keeps its Retryer, and so its budget and its
// breaker; one whose policy changes gets another.
func TestReloadKeepsRetryers(t *testing.T) {
	parse := func(text string) *policyfile.File {
		f, err := policyfile.Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	w, err := newWatch(t.Context(), slog.New(slog.DiscardHandler), "", false)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{watch: w, log: slog.New(slog.DiscardHandler)}
	const routes = "gateway: {routes: [{prefix: /a, dependency: a}, {prefix: /b, dependency: b}]}\n"
	apply := func(retries string) (a, b *forbear.Retryer) {
		f := parse("dependencies: {a: {url: 'http://a'}, b: {url: 'http://b', max_retries: " + retries + "}}\n" + routes)
		if err := s.apply(f); err != nil {
			t.Fatal(err)
		}
		return s.dependencies["a"].retryer, s.dependencies["b"].retryer
	}
	a1, b1 := apply("1")
	a2, b2 := apply("2")
	if a1 != a2 || b1 == b2 {
		t.Errorf("a kept: %v, want true; b kept: %v, want false", a1 == a2, b1 == b2)
	}
}

// What has been learned of a dependency's limit outlasts a change of its policy; the
// policy file can switch the pacing off and on.
func TestReloadKeepsPacers(t *testing.T) {
	w, err := newWatch(t.Context(), slog.New(slog.DiscardHandler), "", false)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{watch: w, log: slog.New(slog.DiscardHandler)}
	apply := func(setting string) *forbear.Retryer {
		f, err := policyfile.Parse("policy.yaml", []byte("dependencies: {a: {url: 'http://a', "+setting+"}}\ngateway: {routes: [{prefix: /a, dependency: a}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.apply(f); err != nil {
			t.Fatal(err)
		}
		return s.dependencies["a"].retryer
	}
	first, second := apply("max_retries: 1"), apply("max_retries: 2")
	if first == second || edge.Pacer(first) == nil || edge.Pacer(first) != edge.Pacer(second) {
		t.Errorf("pacers %p and %p, want one of a kind", edge.Pacer(first), edge.Pacer(second))
	}
	if off := apply("max_retries: 2, pace: off"); edge.Pacer(off) != nil {
		t.Error("paced, though pace is off")
	}
	if on := apply("max_retries: 2, pace: on"); edge.Pacer(on) == nil {
		t.Error("not paced, though pace is on")
	}
}
