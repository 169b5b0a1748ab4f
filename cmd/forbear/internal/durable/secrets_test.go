package durable

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// verifier keeps what it receives, for signatures to be checked.
type verifier struct {
	mu     sync.Mutex
	last   map[string]*http.Request // by webhook-id
	body   map[string][]byte
	latest string // webhook-id
}

func (v *verifier) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last, v.body = map[string]*http.Request{}, map[string][]byte{}
	}
	id := r.Header.Get("webhook-id")
	v.last[id], v.body[id], v.latest = r, body, id
	return answer(200), err
}

// signed reports whether a message has come and whether its signatures are those of the
// secrets, each of them and no other.
func (v *verifier) signed(t *testing.T, id string, now time.Time, secrets ...string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
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

// An application's secret is rotated as an endpoint's is: the new one is shown once, both
// sign at each endpoint that signs with it, from each process and after a restart, and the
// former is gone when the overlap is over. Its tenant does that; no one else's does.
func TestApplicationSecretsAreRotated(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, name string) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		var log logged
		begin := func() (*Service, *verifier, func()) {
			v := &verifier{}
			s, stop := start(t, Options{Database: name, Poll: 40 * time.Millisecond, Token: "the operator's own token", Transport: v, Now: now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			return s, v, stop
		}
		one, v1, stop1 := begin()
		two, v2, stop2 := begin()
		root := "Bearer the operator's own token"
		do := func(s *Service, want int, auth, method, path, body string) map[string]any {
			t.Helper()
			status, v := call(t, s, method, path, body, "Authorization", auth)
			if status != want {
				t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, status, v, want)
			}
			return v
		}
		first, own := webhook.NewSecret(), webhook.NewSecret()
		do(one, 200, root, "PUT", "/v1/applications/acme", `{"secrets":["`+first+`"]}`)
		do(one, 200, root, "PUT", "/v1/applications/other", `{}`)
		do(one, 200, root, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/a","application":"acme"}`)
		do(one, 200, root, "PUT", "/v1/endpoints/b", `{"url":"https://example.com/b","application":"acme"}`)
		do(one, 200, root, "PUT", "/v1/endpoints/own", `{"url":"https://example.com/own","application":"acme","secrets":["`+own+`"]}`)
		acme := token(t, one, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
		other := token(t, one, `{"name":"ot","scope":"application","application":"other"}`, "Authorization", root)
		// tested has a process send to an endpoint, until the message is signed as wanted.
		tested := func(s *Service, v *verifier, endpoint string, secrets ...string) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				status, _ := call(t, s, "POST", "/v1/endpoints/"+endpoint+"/test", `{"payload":{"for":"`+endpoint+`"}}`, "Authorization", root)
				if status == 404 && time.Now().Before(end) {
					continue // it was put by the other process
				}
				v.mu.Lock()
				id, body, n := v.latest, string(v.body[v.latest]), 0
				if v.last[id] != nil {
					n = len(strings.Fields(v.last[id].Header.Get("webhook-signature")))
				}
				v.mu.Unlock()
				if n != len(secrets) && time.Now().Before(end) {
					continue
				}
				if v.signed(t, id, now(), secrets...); body != `{"for":"`+endpoint+`"}` {
					t.Errorf("%s got %s", endpoint, body)
				}
				return
			}
		}
		tested(two, v2, "a", first)

		do(one, 404, other, "POST", "/v1/applications/acme/secrets/rotate", "")
		do(one, 422, acme, "POST", "/v1/applications/acme/secrets/rotate", `{"overlap":"169h"}`)
		rotated := do(one, 200, acme, "POST", "/v1/applications/acme/secrets/rotate", `{"overlap":"1h"}`)
		second := rotated["secret"].(string)
		tested(one, v1, "a", second, first)
		tested(two, v2, "a", second, first)
		tested(two, v2, "b", second, first)
		tested(two, v2, "own", own)
		// Whichever process takes it, a message is signed with both.
		do(two, 202, acme, "POST", "/v1/messages", `{"id":"m1","endpoint":"b","payload":{"n":1}}`)
		for end := time.Now().Add(time.Minute); !v1.has("m1") && !v2.has("m1") && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		taken := v2
		if v1.has("m1") {
			taken = v1
		}
		taken.signed(t, "m1", now(), second, first)
		do(two, 200, root, "PUT", "/v1/applications/acme", `{"name":"Acme"}`)
		do(two, 200, root, "PATCH", "/v1/applications/acme", `{"rate":1000}`)
		do(two, 422, root, "PATCH", "/v1/applications/acme", `{"old_secrets":null}`)
		do(two, 422, root, "PATCH", "/v1/applications/acme", `{"secrets":null}`)
		shown := do(two, 200, acme, "GET", "/v1/applications/acme", "")
		if shown["secret"] != nil || fmt.Sprint(shown["secrets"]) != "[***]" || len(shown["old_secrets"].([]any)) != 1 {
			t.Errorf("shown is %v", shown)
		}

		stop1()
		stop2()
		one, v1, stop1 = begin()
		tested(one, v1, "a", second, first)
		ahead.Store(int64(time.Hour))
		tested(one, v1, "a", second)
		tested(one, v1, "b", second)
		stop1()
		one, v1, _ = begin() // looks at once what has ended
		tested(one, v1, "a", second)
		for end := time.Now().Add(time.Minute); shown["old_secrets"] != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			shown = do(one, 200, root, "GET", "/v1/applications/acme", "")
		}
		if shown["old_secrets"] != nil || shown["name"] != "Acme" || shown["rate"] != 1000.0 {
			t.Errorf("in the end it is %v", shown)
		}
		trail := fmt.Sprint(do(one, 200, root, "GET", "/v1/audit?action=application-rotate", ""))
		if !strings.Contains(trail, "who:ac at") || !strings.Contains(trail, "version 2: the old secrets end after 1h0m0s") {
			t.Errorf("the trail is %s", trail)
		}
		for _, secret := range []string{first, second} {
			if strings.Contains(trail, secret) || len(log.lines(secret)) > 0 {
				t.Error("a secret is in the log, or in the trail")
			}
		}
	})
}

// has reports whether a message has come.
func (v *verifier) has(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[id] != nil
}
