package durable

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The API keeps the id that a producer has given, dots and all, and shows what its
// receivers see instead.
func TestMessageShowsItsWebhookID(t *testing.T) {
	secret := webhook.NewSecret()
	v := &verifier{}
	s, stop := start(t, Options{Transport: v})
	defer stop()
	put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/a", Secrets: []string{secret}})
	for id, sent := range map[string]string{"a.b": "msg_sha256_LnM23I66h-9HLfVow1SCq_JXXcPl6sDFxiuP-urCyTQ", "plain": ""} {
		if status, m := call(t, s, "POST", "/v1/messages", `{"id":"`+id+`","endpoint":"a","payload":1}`); status != http.StatusAccepted || m["id"] != id {
			t.Fatalf("%s: got %d %v", id, status, m)
		}
		if status, m := call(t, s, "POST", "/v1/messages", `{"id":"`+id+`","endpoint":"a","payload":1}`); status != http.StatusOK || m["duplicate"] != true {
			t.Errorf("%s again: got %d %v", id, status, m)
		}
		status, m := call(t, s, "GET", "/v1/messages/"+id, "")
		if status != http.StatusOK || m["id"] != id {
			t.Fatalf("%s: got %d %v", id, status, m)
		}
		shown, _ := m["contents"].([]any)[0].(map[string]any)["webhook_id"].(string)
		if shown != sent {
			t.Errorf("%s is shown to be sent as %q, want %q", id, shown, sent)
		}
		if sent == "" {
			sent = id
		}
		v.signed(t, sent, time.Now(), secret)
	}
}

// The key of a POST is one key in each of its spellings: the same message again in the
// other one is a duplicate, not a second message.
func TestPostedKeyHasOneMeaning(t *testing.T) {
	s, stop := start(t, Options{Transport: &verifier{}})
	defer stop()
	put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/a"})
	post := func(keys ...string) (int, map[string]any) {
		t.Helper()
		r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(`{"endpoint":"a","payload":1}`))
		r.Host = "127.0.0.1:8080"
		r.Header["Idempotency-Key"] = keys
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		var v map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return w.Code, v
	}
	if status, v := post("order-4711"); status != http.StatusAccepted || v["id"] != "order-4711" {
		t.Errorf("got %d %v", status, v)
	}
	if status, v := post(`"order-4711"`); status != http.StatusOK || v["id"] != "order-4711" || v["duplicate"] != true {
		t.Errorf("in quotes: got %d %v", status, v)
	}
	for _, keys := range [][]string{{""}, {"a,b"}, {`"a`}, {"a", "b"}, {strings.Repeat("k", 65)}} {
		if status, v := post(keys...); status != http.StatusUnprocessableEntity {
			t.Errorf("%q: got %d %v", keys, status, v)
		}
	}
}
