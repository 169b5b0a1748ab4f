package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// flaky keeps what arrives. It refuses the first attempt of messages whose id ends with
// 0, and quotes the payload when it does; those called dead it refuses for good.
type flaky struct {
	*httptest.Server
	mu      sync.Mutex
	refused map[string]bool
	seen    map[string]string // bodies by id
}

func newFlaky(t *testing.T) *flaky {
	f := &flaky{refused: map[string]bool{}, seen: map[string]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := r.Header.Get("Webhook-Id")
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case strings.HasPrefix(id, "dead"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(body)
		case strings.HasSuffix(id, "0") && !f.refused[id]:
			f.refused[id] = true
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(body)
		default:
			f.seen[id] = string(body)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// arrived reports whether all messages of a kind are there, with their content.
func (f *flaky) arrived(kind string, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range n {
		if id := fmt.Sprintf("%s-%d", kind, i); f.seen[id] != planted(id) {
			return false
		}
	}
	return true
}

func planted(id string) string { return `"planted ` + id + `"` }

// atRest returns all that is stored of messages, as it is stored.
func atRest(t *testing.T, database string) []byte {
	t.Helper()
	var all bytes.Buffer
	db := outside(t, database)
	for _, text := range []string{
		`SELECT meta, body FROM forbear_messages`, `SELECT COALESCE(response, ''), COALESCE(cause, '') FROM forbear_attempts`,
		`SELECT meta, sealed FROM forbear_letters`, `SELECT spec, '' FROM forbear_endpoints`, `SELECT spec, '' FROM forbear_applications`, `SELECT header, body FROM forbear_idempotency`,
	} {
		rows, err := db.QueryContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var a, b []byte
			if err := rows.Scan(&a, &b); err != nil {
				t.Fatal(err)
			}
			all.Write(a)
			all.Write(b)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// Encryption is switched on and its key rotated while messages are in flight: all of
// them arrive as they were, and with the old key gone nothing is missing or readable.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		sink := newFlaky(t)
		old, current := sqlstore.NewKey("0ld0ld01"), sqlstore.NewKey("ne1ne1e1")
		run := func(keys ...sqlstore.Key) (*Service, func()) {
			o := Options{Database: database, Poll: 40 * time.Millisecond}
			if len(keys) > 0 {
				c, err := sqlstore.NewCipher(keys...)
				if err != nil {
					t.Fatal(err)
				}
				o.Cipher = c
			}
			return start(t, o)
		}
		const n = 12
		offer := func(s *Service, kind string, in time.Duration) {
			t.Helper()
			for i := range n {
				id := fmt.Sprintf("%s-%d", kind, i)
				m := webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(planted(id)), Headers: []webhook.Header{{Name: "X-Head", Value: "planted"}}}
				if in > 0 {
					m.NotBefore = time.Now().Add(in)
				}
				if i%2 == 0 {
					m.Headers = nil // a message with nothing but its body
				}
				send(t, s, m)
			}
		}
		s, stop := run()
		e := webhook.Endpoint{ID: "a", URL: sink.URL, Secrets: []string{webhook.NewSecret()}}
		put(t, s, e)
		if _, err := s.Dispatcher.PutApplication(t.Context(), webhook.Application{ID: "tenant"}); err != nil {
			t.Fatal(err)
		}
		offer(s, "plain", 3*time.Second)
		send(t, s, webhook.Message{ID: "dead-plain", Endpoints: []string{"a"}, Body: []byte(planted("dead"))})
		waitLetters(t, s, 1)
		stop()
		s, stop = run(old, current)
		offer(s, "old", 2*time.Second)
		send(t, s, webhook.Message{ID: "dead-old", Endpoints: []string{"a"}, Body: []byte(planted("dead"))})
		claim := idempotency.Claim{ID: idempotency.ID{Scope: "s", Key: "k"}, Owner: "w", Fingerprint: "f", Lease: time.Minute, Retention: time.Hour}
		v, err := s.DB.Idempotency().Claim(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		reply := idempotency.Response{Status: 201, Header: http.Header{"X-A": {"planted"}}, Body: []byte("planted reply")}
		if err := s.DB.Idempotency().Complete(t.Context(), idempotency.Token{ID: claim.ID, Owner: "w", Fence: v.Record.Fence}, reply, time.Hour); err != nil {
			t.Fatal(err)
		}
		waitLetters(t, s, 2)
		stop()
		s, stop = run(current, old)
		offer(s, "new", 0)
		// Meanwhile, as often as something else writes.
		written := int64(0)
		if _, err := s.DB.Reencrypt(t.Context(), func(_ string, _, n int64) { written = n }); err != nil || written < 2*n {
			t.Fatalf("%d rows written anew, %v", written, err)
		}
		offer(s, "later", time.Second)
		list, err := s.DB.SealedUnder(t.Context())
		parts := map[string]int64{}
		for _, c := range list {
			if parts[c.Part] = c.Rows; c.Key != "ne1ne1e1" || !c.Current {
				t.Errorf("%+v is left", c)
			}
		}
		if err != nil || parts["messages"] != 4*n+2 || parts["dead letters"] != 2 || parts["idempotency records"] != 1 || parts["endpoints"] != 1 || parts["applications"] != 1 || parts["attempts"] < 2 {
			t.Errorf("counted %v, %v", parts, err)
		}
		stop()
		s, stop = run(current)
		for _, kind := range []string{"plain", "old", "new", "later"} {
			waitFor(t, kind, func() bool { return sink.arrived(kind, n) })
		}
		for _, l := range waitLetters(t, s, 2) {
			if string(l.Payload) != planted("dead") || len(l.History) == 0 || !strings.Contains(l.History[0].Response, "planted") {
				t.Errorf("the letter of %s: %s %+v", l.EventID, l.Payload, l.History)
			}
		}
		if v, err := s.DB.Idempotency().Claim(t.Context(), claim); err != nil || v.Record.Response == nil || string(v.Record.Response.Body) != "planted reply" || v.Record.Response.Header.Get("X-A") != "planted" {
			t.Errorf("the record is %+v, %v", v.Record, err)
		}
		stop()
		if at := atRest(t, database); bytes.Contains(at, []byte("planted")) || len(at) == 0 {
			t.Errorf("in %d bytes at rest something can be read", len(at))
		}
		c, err := sqlstore.NewCipher(old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(t.Context(), Options{Database: database, Cipher: c, Logger: quiet}); !errors.Is(err, sqlstore.ErrKey) || !strings.Contains(err.Error(), "ne1ne1e1") {
			t.Errorf("with the wrong key: %v", err)
		}
	})
}

// An export is read with either key.
func TestExportsAfterARotation(t *testing.T) {
	old, current := sqlstore.NewKey("k1"), sqlstore.NewKey("k2")
	first, err := sqlstore.NewCipher(old)
	if err != nil {
		t.Fatal(err)
	}
	both, err := sqlstore.NewCipher(current, old)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	for i, c := range []sqlstore.Cipher{first, both} {
		if err := queue.ExportSealed(&file, deadletter.Letter{ID: fmt.Sprint(i), Queue: "q", Payload: []byte("planted")}, c); err != nil {
			t.Fatal(err)
		}
	}
	text, n := file.String(), 0
	if err := queue.ReadExport(strings.NewReader(text), both, func(l deadletter.Letter) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("%d letters, %v", n, err)
	}
	if err := queue.ReadExport(strings.NewReader(text), first, func(deadletter.Letter) error { return nil }); !errors.Is(err, sqlstore.ErrKey) || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("without the new key: %v", err)
	}
}
