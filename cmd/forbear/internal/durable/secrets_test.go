package durable

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// verifier keeps what it receives, for signatures to be checked.
type verifier struct {
	mu   sync.Mutex
	last map[string]*http.Request // by webhook-id
	body map[string][]byte
}

func (v *verifier) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last, v.body = map[string]*http.Request{}, map[string][]byte{}
	}
	id := r.Header.Get("webhook-id")
	v.last[id], v.body[id] = r, body
	return answer(200), err
}

// signed reports whether a message has come and whether its signatures are those of the
// secrets, each of them and no other.
func (v *verifier) signed(t *testing.T, id string, now time.Time, secrets ...string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		v.mu.Lock()
		r, body := v.last[id], v.body[id]
		v.mu.Unlock()
		if r == nil && time.Now().Before(end) {
			continue
		}
		if r == nil {
			t.Fatalf("%s has not come", id)
		}
		list := strings.Fields(r.Header.Get("webhook-signature"))
		if len(list) != len(secrets) {
			t.Fatalf("%s has %d signatures, want %d", id, len(list), len(secrets))
		}
		for i, secret := range secrets {
			if err := webhook.Verify(secret, id, r.Header.Get("webhook-timestamp"), list[i], body, now); err != nil {
				t.Errorf("%s, signature %d: %v", id, i, err)
			}
		}
		return
	}
}

// A new endpoint without secrets gets one, which is shown once; rotated, the new one is
// shown once, and the receiver may verify with either until the overlap is over. A tenant
// does that for its own endpoints.
func TestSecretsAreMadeAndRotated(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		v := &verifier{}
		var mu sync.Mutex
		ahead := time.Duration(0)
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
		s, _ := start(t, Options{Database: name, Token: "the operator's own token", Transport: v, Now: now})
		root := "Bearer the operator's own token"
		do := func(want int, auth, method, path, body string) map[string]any {
			t.Helper()
			w, shown := ask(t, s, method, path, body, "Authorization", auth)
			if w.Code != want {
				t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, w.Code, shown, want)
			}
			return shown
		}
		send := func(id, endpoint string) {
			t.Helper()
			do(202, root, "POST", "/v1/messages", `{"id":"`+id+`","endpoint":"`+endpoint+`","payload":{"n":1}}`)
		}
		do(200, root, "PUT", "/v1/applications/acme", `{}`)
		acme := token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
		made := do(201, acme, "POST", "/v1/endpoints", `{"url":"https://example.com/"}`)
		id, first := made["id"].(string), made["secret"].(string)
		again := do(200, acme, "PUT", "/v1/endpoints/"+id, `{"url":"https://example.com/","rate":500}`)
		shown := do(200, acme, "GET", "/v1/endpoints/"+id, "")
		if again["secret"] != nil || shown["secret"] != nil || shown["secrets"].([]any)[0] != "***" {
			t.Errorf("put again it is %v, and shown %v", again, shown)
		}
		send("m1", id)
		v.signed(t, "m1", now(), first)

		second := do(200, acme, "POST", "/v1/endpoints/"+id+"/secrets/rotate", `{"overlap":"1h"}`)["secret"].(string)
		send("m2", id)
		v.signed(t, "m2", now(), second, first)
		do(422, acme, "PATCH", "/v1/endpoints/"+id, `{"old_secrets":null}`)
		do(422, acme, "POST", "/v1/endpoints/"+id+"/secrets/rotate", `{"overlap":"169h"}`)
		do(400, acme, "POST", "/v1/endpoints/"+id+"/secrets/rotate", `{"overlap":"soon"}`)
		mu.Lock()
		ahead = time.Hour // not more: on PostgreSQL messages would be too old
		mu.Unlock()
		send("m3", id)
		v.signed(t, "m3", now(), second)
		third := do(200, acme, "POST", "/v1/endpoints/"+id+"/secrets/rotate", `{"overlap":"0s"}`)
		if third["old_secrets"] != nil {
			t.Errorf("without an overlap: %v", third)
		}
		send("m4", id)
		v.signed(t, "m4", now(), third["secret"].(string))

		do(200, root, "PUT", "/v1/endpoints/plain", `{"url":"https://example.com/","unsigned":true}`)
		send("m5", "plain")
		v.signed(t, "m5", now())
		if e := do(200, root, "GET", "/v1/endpoints/plain", ""); e["unsigned"] != true {
			t.Errorf("unsigned, it is shown as %v", e)
		}
		do(404, acme, "POST", "/v1/endpoints/plain/secrets/rotate", "")
		replaced := do(200, root, "PATCH", "/v1/endpoints/plain", `{"unsigned":false}`)
		send("m6", "plain")
		v.signed(t, "m6", now(), replaced["secret"].(string))
		rotated := do(200, root, "POST", "/v1/endpoints/plain/secrets/rotate", "")
		old := rotated["old_secrets"].([]any)[0].(map[string]any)
		until, err := time.Parse(time.RFC3339, old["until"].(string))
		if err != nil || until.Sub(now()).Round(time.Minute) != 24*time.Hour || old["secret"] != "***" {
			t.Errorf("rotated without a word, the old secret is %v, %v", old, err)
		}
	})
}
