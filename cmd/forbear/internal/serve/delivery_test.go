package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/dlq"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// TestMain keeps the database that serve opens out of the source tree, and lets the tests
// share servers.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "forbear-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("FORBEAR_DATABASE", filepath.Join(dir, "forbear.db"))
	code := redistest.Main(func() int { return pgtest.Main(m, nil) })
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func post(t *testing.T, method, url, body string, want int) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forbear-Actor", "ann")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, url, resp.StatusCode, text, err, want)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// The whole way: a message that fails becomes a dead letter, the command shows
// it masked, redrives it, and the receiver gets the same id.
func TestServeAndRedrive(t *testing.T) {
	var mu sync.Mutex
	broken := true
	var ids []string
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, r.Header.Get("Webhook-Id"))
		if broken {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer sink.Close()
	db := filepath.Join(t.TempDir(), "forbear.db")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs clitest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- Command().Run(ctx, &cli.Streams{Out: &out, Err: &errs}, []string{"--listen", "127.0.0.1:0", "--database", db, "--allow-target", "127.0.0.0/8"})
	}()
	defer func() {
		cancel()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("serve ended with %d: %s", code, errs.String())
		}
	}()
	base := ""
	for range 3000 {
		if m := regexp.MustCompile(`http://127[0-9.:]+`).FindString(out.String()); m != "" {
			base = m
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	post(t, "PUT", base+"/v1/endpoints/acme", `{"url":"`+sink.URL+`"}`, 200)
	m := post(t, "POST", base+"/v1/messages", `{"endpoint":"acme","payload":{"card":"4111-secret"}}`, 202)
	run := func(want int, args ...string) string {
		t.Helper()
		got := clitest.Run(t, dlq.Command(), "", append([]string{args[0], "--database", db}, args[1:]...)...)
		if got.Code != want {
			t.Fatalf("dlq %v: want exit code %d: %+v", args, want, got)
		}
		return got.Out
	}
	for i := 0; !strings.Contains(clitest.Run(t, dlq.Command(), "", "list", "--database", db).Out, "dlq_"); i++ {
		if i > 200 {
			t.Fatal("no dead letter")
		}
		time.Sleep(20 * time.Millisecond)
	}
	id := regexp.MustCompile(`dlq_[0-9a-z]+`).FindString(run(0, "list", "--reason", "terminal"))
	if shown := run(0, "show", id); strings.Contains(shown, "4111") || !strings.Contains(shown, "http_400") {
		t.Errorf("show without --reveal: %s", shown)
	}
	if shown := run(0, "show", "--reveal", "--actor", "bob", id); !strings.Contains(shown, "4111-secret") {
		t.Errorf("show with --reveal: %s", shown)
	}
	if out := run(0, "redrive", "--destination", "acme", "--dry-run"); !strings.Contains(out, "1 dead letter would") {
		t.Errorf("dry run: %s", out)
	}
	run(2, "redrive")
	mu.Lock()
	broken = false
	mu.Unlock()
	if out := run(0, "redrive", "--destination", "acme", "--canary", "--wait"); !strings.Contains(out, "done") {
		t.Errorf("redrive: %s", out)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 2 || ids[0] != ids[1] || ids[0] != m["id"] {
		t.Errorf("the receiver saw %v, want %v twice", ids, m["id"])
	}
	run(1, "list", "--state", "dead")
	audit := post(t, "GET", base+"/v1/audit", "", 200)["audit"].([]any)
	text, _ := json.Marshal(audit)
	for _, want := range []string{`"reveal"`, `"bob"`, `"redrive"`, `"endpoint-put"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the audit has no %s: %s", want, text)
		}
	}
}
