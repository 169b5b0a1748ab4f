package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/redisstore"
)

// payments is a service that does not know what became of its first run of a
// key, and the operator's program beside it.
type payments struct {
	t       *testing.T
	web     *httptest.Server
	runs    atomic.Int64
	program string
	flags   []string // of the program, for the store
}

func newPayments(t *testing.T, store idempotency.Store, flags ...string) *payments {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &payments{t: t, program: program, flags: flags}
	h, err := idempotency.Handler(store, idempotency.Options{
		Scope:        func(r *http.Request) (string, error) { return r.Header.Get("X-Principal"), nil },
		StoreTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return // a probe that another test left to this port
		}
		n := p.runs.Add(1)
		if idempotency.Attempt(r.Context()) == 1 {
			idempotency.MarkUnknown(r.Context())
		}
		fmt.Fprintf(w, "run %d", n)
	}))
	if err != nil {
		t.Fatal(err)
	}
	p.web = httptest.NewServer(h)
	t.Cleanup(p.web.Close)
	return p
}

// post sends one payment and returns status, body and the headers.
func (p *payments) post(principal, key string) (int, string, http.Header) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.web.URL, strings.NewReader("100"))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set(idempotency.Header, key)
	req.Header.Set("X-Principal", principal)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// keys runs the built program. It never prints a key.
func (p *payments) keys(in, verb string, args ...string) (code int, text string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.program, append(append([]string{"keys", verb}, p.flags...), args...)...)
	cmd.Stdin = strings.NewReader(in)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if strings.Contains(out.String(), customerKey) {
		p.t.Errorf("keys %s %q prints the key:\n%s", verb, args, out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

const customerKey = "planted-0b8a6a0e-3c5e-4f6b-9f5e"

// An operator finds what a customer complains of by the customer's key, and
// settles it with the response that was lost: duplicates get it from then on.
func (p *payments) settledWithResponse(audit func(context.Context, int) ([]queue.Entry, error)) {
	t := p.t
	for _, principal := range []string{"ann", "bob"} {
		p.post(principal, customerKey)
		if status, body, _ := p.post(principal, customerKey); status != http.StatusConflict || !strings.Contains(body, "outcome-unknown") {
			t.Fatalf("before: %d %s", status, body)
		}
	}
	digest := idempotency.Digest(customerKey)
	if code, text := p.keys("", "show", "--key", customerKey); code != 0 || strings.Count(text, digest) != 2 || !strings.Contains(text, `"ann"`) || !strings.Contains(text, `"bob"`) {
		t.Errorf("show: %d %s", code, text)
	}
	code, text := p.keys(customerKey+"\n", "show", "--key", "-", "--scope", "ann")
	for _, want := range []string{digest, `"ann"`, "held", `"POST /"`, "the handler does not know", "fence:", "lease end:"} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("show of one scope lacks %s: %d %s", want, code, text)
		}
	}
	if code, text := p.keys("", "show", "--key", customerKey, "--scope", "carol"); code != 1 {
		t.Errorf("show of a scope without it: %d %s", code, text)
	}

	const body = `{"id":17,"card":"planted-body"}`
	file := filepath.Join(t.TempDir(), "paid.json")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	done := []string{"--done", "201", "--why", "in the ledger", "--actor", "eve", "--header", "Content-Type: application/json", "--header", "Location: /payments/17"}
	if code, text := p.keys("", "settle", append(done, "--body", file, "--key", customerKey)...); code != 2 || !strings.Contains(text, "--scope") {
		t.Errorf("settle of two: %d %s", code, text)
	}
	if code, text := p.keys("", "settle", append(done, "--body", file, "--fence", "9", "ann", digest)...); code != 1 {
		t.Errorf("settle of a run that there is not: %d %s", code, text)
	}
	if code, text := p.keys("", "settle", append(done, "--body", file, "--fence", "1", "ann", digest)...); code != 0 {
		t.Fatalf("settle: %d %s", code, text)
	}
	// From standard input, and by the key.
	if code, text := p.keys(body, "settle", append(done, "--body", "-", "--scope", "bob", "--key", customerKey)...); code != 0 {
		t.Fatalf("settle by key: %d %s", code, text)
	}
	for _, principal := range []string{"ann", "bob"} {
		status, got, header := p.post(principal, customerKey)
		if status != http.StatusCreated || got != body || header.Get("Content-Type") != "application/json" || header.Get("Location") != "/payments/17" || header.Get(idempotency.HeaderReplayed) != "true" {
			t.Errorf("%s's duplicate gets %d %s %v", principal, status, got, header)
		}
	}
	// What is no longer held is not overwritten.
	if code, text := p.keys("", "settle", "--done", "200", "--why", "again", "ann", digest); code != 1 {
		t.Errorf("settle again: %d %s", code, text)
	}
	if status, got, _ := p.post("ann", customerKey); status != http.StatusCreated || got != body {
		t.Errorf("after a second settle: %d %s", status, got)
	}
	if n := p.runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
	if code, text := p.keys("", "show", "--scope", "ann", "--key", customerKey, "-o", "json"); code != 0 || !strings.Contains(text, `"status":201`) || !strings.Contains(text, `["Content-Type","Location"]`) || !strings.Contains(text, "resolved by eve: in the ledger") || strings.Contains(text, "planted-body") {
		t.Errorf("show in JSON: %d %s", code, text)
	}
	if audit == nil {
		return
	}
	trail, err := audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("sha256 %x", sha256.Sum256([]byte(body)))
	found := 0
	for _, e := range trail {
		if e.Who == "eve" && e.Action == "settle" && e.Target == "ann "+digest && strings.Contains(e.Detail, "done, 201, headers Content-Type Location, body of 31 bytes, "+sum+": in the ledger") {
			found++
		}
		if strings.Contains(fmt.Sprint(e), "planted") {
			t.Errorf("the audit trail has what was in the response or the key: %+v", e)
		}
	}
	if found == 0 {
		t.Errorf("the audit trail lacks the response: %+v", trail)
	}
}

// An event is found by its source and id, and settled without a response.
func (p *payments) settledEvent(store idempotency.Store) {
	t, ctx := p.t, p.t.Context()
	c := idempotency.Claim{ID: idempotency.ID{Scope: "event:orders", Key: idempotency.Digest("shop", customerKey)}, Fingerprint: "event", Operation: "orders", Owner: "a", Lease: time.Minute, Retention: time.Hour}
	if _, err := store.Claim(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := store.Hold(ctx, idempotency.Token{ID: c.ID, Owner: "a"}, "cut off"); err != nil {
		t.Fatal(err)
	}
	if code, text := p.keys("", "show", "--source", "shop", "--key", customerKey); code != 0 || !strings.Contains(text, "event:orders") {
		t.Errorf("show of an event: %d %s", code, text)
	}
	settle := []string{"--done", "200", "--why", "booked", "--source", "shop", "--key", customerKey}
	if code, text := p.keys("x", "settle", append(settle, "--header", "Content-Type: text/plain", "--body", "-")...); code != 2 || !strings.Contains(text, "an event has no response") {
		t.Errorf("a response for an event: %d %s", code, text)
	}
	if code, text := p.keys("", "settle", settle...); code != 0 {
		t.Errorf("settle of an event: %d %s", code, text)
	}
	if rec, err := store.Get(ctx, c.ID); err != nil || rec.State != idempotency.Completed || rec.Response.Status != 200 {
		t.Errorf("got %+v, %v", rec, err)
	}
}

func TestKeysBinary(t *testing.T) {
	sql := func(t *testing.T, name string) {
		db, err := database.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := newPayments(t, db.Idempotency(), "--database", name)
		p.settledWithResponse(db.DeadLetters().AuditTrail)
		p.settledEvent(db.Idempotency())
	}
	t.Run("SQLite", func(t *testing.T) { sql(t, filepath.Join(t.TempDir(), "forbear.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { sql(t, pgtest.Database(t)) })
	t.Run("Redis", func(t *testing.T) {
		url := redistest.Database(t)
		store, err := redisstore.OpenIdempotency(t.Context(), url, redisstore.IdempotencyOptions{Prefix: "pay:", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		p := newPayments(t, store, "--database", url, "--prefix", "pay:")
		p.settledWithResponse(nil)
		p.settledEvent(store)
	})
}
