package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/webhook"
)

// One press of the test button reaches every notifier, each in its own form.
func TestAlertNotifiers(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	secret := webhook.NewSecret()
	t.Setenv("FORBEAR_SECRET_ALERTS", secret)
	ops := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = string(body)
		if r.URL.Path == "/hook" {
			if err := webhook.Verify(secret, r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature"), body, time.Now()); err != nil {
				t.Error(err)
			}
		}
	}))
	defer ops.Close()
	dir := t.TempDir()
	s := startServe(t, "--listen", "127.0.0.1:0", "--database", filepath.Join(dir, "forbear.db"),
		"--allow-target", "127.0.0.0/8", "--alert-allow-target", "127.0.0.0/8",
		"--alert-slack", ops.URL+"/services/token", "--alert-alertmanager", ops.URL,
		"--alert-webhook", ops.URL+"/hook", "--alert-webhook-secret", "env:ALERTS", "--alert-command", "tee "+filepath.Join(dir, "alert"))
	answer := post(t, "POST", s.base+"/v1/alerts/test", "", 200)
	text, _ := json.Marshal(answer)
	if n := strings.Count(string(text), `"healthy":true`); n != 5 {
		t.Errorf("%d healthy notifiers of 5: %s", n, text)
	}
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string]string{"/services/token": `{"text":"forbear: 1 x test`, "/api/v2/alerts": `"alertname":"ForbearDeadLetter"`, "/hook": `"type":"forbear.alert"`} {
		if !strings.Contains(got[path], want) {
			t.Errorf("%s got %q, want %s", path, got[path], want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "alert")); err != nil || !strings.Contains(string(b), `"queue":"test"`) {
		t.Errorf("the command got %s, %v", b, err)
	}
}

func TestAlertFlagsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an inner address":    {[]string{"--alert-slack", "http://169.254.169.254/latest"}, "--alert-slack: address not allowed"},
		"the way out":         {[]string{"--alert-alertmanager", "http://localhost:9093"}, "allow it with --alert-allow-target"},
		"an unsigned webhook": {[]string{"--alert-webhook", "https://ops.example.com/"}, "needs --alert-webhook-secret"},
		"a secret for none":   {[]string{"--alert-webhook-secret", "env:X"}, "needs --alert-webhook"},
		"no such secret":      {[]string{"--alert-webhook", "https://ops.example.com/", "--alert-webhook-secret", "env:NOBODY"}, "FORBEAR_SECRET_NOBODY is not set"},
		"no address":          {[]string{"--alert-slack", "slack"}, "want https:// or http://"},
	} {
		r := clitest.Run(t, Command(), "", append([]string{"--listen", "127.0.0.1:0", "--database", filepath.Join(t.TempDir(), "forbear.db")}, c.args...)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Errors, c.want) {
			t.Errorf("%s: exit %d, %q; want %q", name, r.Code, r.Errors, c.want)
		}
	}
}
