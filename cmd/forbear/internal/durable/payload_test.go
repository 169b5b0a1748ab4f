package durable

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// A payload as large as the limit goes every way: in by the API and the outbox, out
// to the receiver, into an encrypted letter and its export, and out again by a
// redrive. One byte more is refused, and the error names limit and setting.
func TestPayloadUpToTheLimit(t *testing.T) {
	race.TooSlow(t, "TestOutbox has the way of a payload")
	databases(t, func(t *testing.T, database string) {
		var broken atomic.Bool
		broken.Store(true)
		sink := newBodiesSink(t)
		whole := sink.Config.Handler
		sink.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() && strings.HasPrefix(r.Header.Get("Webhook-Id"), "dead") {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			whole.ServeHTTP(w, r)
		})
		cipher, err := sqlstore.NewCipher(sqlstore.NewKey("k"))
		if err != nil {
			t.Fatal(err)
		}
		s, stop := start(t, Options{Database: database, Poll: 40 * time.Millisecond, MaxPayload: webhook.MaxPayload, Cipher: cipher})
		put(t, s, webhook.Endpoint{ID: "a", URL: sink.URL + "/a"})
		full := strings.Repeat("0123456789abcdef", webhook.MaxPayload/16)
		post := func(id, body string) (int, map[string]any) {
			return call(t, s, "POST", "/v1/messages", `{"id":"`+id+`","endpoint":"a","payload_base64":"`+base64.StdEncoding.EncodeToString([]byte(body))+`"}`)
		}
		for _, id := range []string{"api", "dead"} {
			if code, v := post(id, full); code != http.StatusAccepted {
				t.Fatalf("%s: %d %v", id, code, v)
			}
		}
		if code, v := post("more", full+"x"); code != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(v["detail"]), "payload of 1048577 bytes is above the limit of 1048576") {
			t.Errorf("one byte more: %d %v", code, v)
		}
		if code, v := post("much", full+full+full); code != http.StatusRequestEntityTooLarge || !strings.Contains(fmt.Sprint(v["detail"]), "--max-payload") {
			t.Errorf("three times as much: %d %v", code, v)
		}
		db := outside(t, database)
		for id, body := range map[string]string{"outbox": full, "outbox-more": full + "x"} {
			text := `INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES (?, 'a', ?)`
			if s.postgres() {
				text = strings.NewReplacer("(?", "($1", ", ?", ", $2").Replace(text)
			}
			if _, err := db.ExecContext(t.Context(), text, id, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		arrived := func(id string) bool {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			return sink.seen["a "+id] == full
		}
		waitFor(t, "messages", func() bool { return arrived("api") && arrived("outbox") })
		waitFor(t, "letters", func() bool {
			n, err := s.DB.DeadLetters().Count(t.Context(), queue.Filter{})
			return n == 2 && err == nil
		})
		letters := map[string]deadletter.Letter{}
		for _, l := range waitLetters(t, s, 2) {
			letters[l.EventID] = l
		}
		if l := letters["outbox-more"]; l.Reason != deadletter.ReasonInvalid || !strings.Contains(l.Description, "max-payload") || len(l.Payload) != webhook.MaxPayload+1 {
			t.Errorf("the letter of what was too large is %s %q of %d bytes", l.Reason, l.Description, len(l.Payload))
		}
		var file bytes.Buffer
		if err := queue.ExportSealed(&file, letters["dead"], cipher); err != nil {
			t.Fatal(err)
		}
		if err := queue.ReadExport(&file, cipher, func(l deadletter.Letter) error {
			if string(l.Payload) != full {
				t.Errorf("%d bytes came back from the export", len(l.Payload))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		broken.Store(false)
		if code, v := call(t, s, "POST", "/v1/redrives", `{"filter":{"ids":["`+letters["dead"].ID+`"]}}`); code/100 != 2 {
			t.Fatalf("redrive: %d %v", code, v)
		}
		waitFor(t, "the redriven", func() bool { return arrived("dead") })
		stop()
	})
}

// Without the setting the limit is CloudEvents'.
func TestPayloadByDefault(t *testing.T) {
	s, stop := start(t, Options{})
	defer stop()
	put(t, s, webhook.Endpoint{ID: "a", URL: "http://127.0.0.1:9/"})
	for size, want := range map[int]int{256<<10 - 2: http.StatusAccepted, 256<<10 - 1: http.StatusUnprocessableEntity} {
		if code, v := call(t, s, "POST", "/v1/messages", `{"endpoint":"a","payload":"`+strings.Repeat("x", size)+`"}`); code != want {
			t.Errorf("%d bytes and quotes: %d %v", size, code, v)
		}
	}
}
