package durable

import (
	"net/http"
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
