package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// TestServeAddsCredentials: a policy file names where they are, the upstream
// gets them, and nobody else sees them; a reload keeps the token.
func TestServeAddsCredentials(t *testing.T) {
	const clientSecret, token = "planted-secret", "planted-token"
	var mu sync.Mutex
	issued := 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, secret, _ := r.BasicAuth(); secret != clientSecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		issued++
		_, _ = io.WriteString(w, `{"access_token":"`+token+`","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "client")
	if err := os.WriteFile(file, []byte(clientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(retries string) {
		text := "dependencies:\n  up:\n    url: '" + up.URL + "'\n    max_retries: " + retries + `
    credentials:
      token_url: ` + tokens.URL + `
      client_id: checkout
      client_secret: {file: '` + file + `'}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /, dependency: up}
`
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	s := startServe(t, "--config", path, "--reload-every", "10ms")
	get := func() {
		t.Helper()
		resp, err := http.Get(s.base + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Errorf("got %d: %s", resp.StatusCode, body)
		}
	}
	get()
	write("2")
	eventually(t, "the reload", func() bool { return strings.Contains(s.log.String(), "policy changed") })
	get()
	mu.Lock()
	if issued != 1 {
		t.Errorf("%d tokens, want one for both policies", issued)
	}
	mu.Unlock()
	s.stop()
	if log := s.log.String(); strings.Contains(log, "planted") {
		t.Errorf("the log shows a secret: %s", log)
	}
}

func TestServeWithoutItsCredentials(t *testing.T) {
	t.Setenv("SERVE_TEST_MISSING", "")
	path := clitest.File(t, "policy.yaml", "dependencies:\n  up: {url: 'http://127.0.0.1:1', credentials: {secret: {env: SERVE_TEST_MISSING}}}\ngateway:\n  routes:\n    - {prefix: /, dependency: up}\n")
	got := clitest.Run(t, Command(), "", "--config", path)
	if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "policy.yaml:2:3: credentials of up: environment variable SERVE_TEST_MISSING is empty: set it where the gateway runs") {
		t.Errorf("got %+v", got)
	}
}
