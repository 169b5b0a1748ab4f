package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// TestServeAsksHealthEndpoints: retries stop while the endpoint of a dependency is
// ill, and a reload that no longer names it ends the questions.
func TestServeAsksHealthEndpoints(t *testing.T) {
	var sends, questions atomic.Int64
	var well atomic.Bool
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health/ready" {
			questions.Add(1)
			if well.Load() {
				return
			}
		} else {
			sends.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(up.Close)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(health string) {
		text := "dependencies:\n  up: {url: '" + up.URL + "', max_retries: 1, backoff: {base: 1ms, cap: 2ms}, breaker: {disabled: true}, budget: {min_retries: 10}" +
			health + "}\ngateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /, dependency: up}\n"
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	write(", health: {endpoint: '" + up.URL + "/health/ready', interval: 2ms}")
	s := startServe(t, "--config", path, "--reload-every", "20ms")
	sent := func() int64 {
		before := sends.Load()
		s.get(t)
		return sends.Load() - before
	}
	eventually(t, "the gate's closing", func() bool { return sent() == 1 })
	if text := s.log.String(); !strings.Contains(text, "health endpoint is unhealthy: retries stop") || !strings.Contains(text, "dependency=up") {
		t.Errorf("the log does not say that retries stop:\n%s", text)
	}
	well.Store(true)
	eventually(t, "the gate's opening", func() bool { return sent() == 2 })
	well.Store(false)
	eventually(t, "its closing again", func() bool { return sent() == 1 })
	write("")
	eventually(t, "the reload", func() bool { return sent() == 2 })
	last := int64(-1)
	eventually(t, "the end of the questions", func() bool {
		before := last
		last = questions.Load()
		return last == before // none within several intervals
	})
	if code := s.stop(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}
