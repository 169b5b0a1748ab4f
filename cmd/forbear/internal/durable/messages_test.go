package durable

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// messagesOf returns the states of the messages of a list, with their ids.
func messagesOf(t *testing.T, s *Service, query string) string {
	t.Helper()
	var list []string
	for after := ""; ; {
		status, page := call(t, s, "GET", "/v1/messages?limit=2&"+query+after, "")
		if status != 200 {
			t.Fatalf("got %d %v", status, page)
		}
		for _, m := range page["messages"].([]any) {
			m := m.(map[string]any)
			list = append(list, fmt.Sprint(m["id"], "@", m["endpoint"], " ", m["state"]))
		}
		if page["next"] == "" {
			return strings.Join(list, ", ")
		}
		after = fmt.Sprint("&after=", page["next"])
	}
}

// An operator finds messages, stops some, and has others sent again: as the same
// messages, in the eyes of their receiver.
func TestMessagesAreManaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		s, stop := start(t, Options{Transport: guarded(&mu, func(r *http.Request) (*http.Response, error) {
			got = append(got, fmt.Sprint(r.Header.Get("webhook-id"), " ", r.Header.Get("Idempotency-Key"), " ", r.Header.Get("X-Retry-Attempt")))
			return answer(200), nil
		})})
		defer stop()
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/a", Ordered: true})
		put(t, s, webhook.Endpoint{ID: "b", URL: "https://example.com/b"})
		if status, v := call(t, s, "POST", "/v1/endpoints/b/disable", ""); status != 200 {
			t.Fatalf("got %d %v", status, v)
		}
		for i, body := range []string{`"type":"t.1"`, `"type":"t.2","idempotency_key":"k2"`} {
			call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"m%d","endpoints":["a","b"],"payload":%d,%s}`, i+1, i, body))
		}
		time.Sleep(2 * time.Second)
		if list := messagesOf(t, s, ""); list != "m2@b waiting, m2@a delivered, m1@b waiting, m1@a delivered" {
			t.Errorf("all are %s", list)
		}
		if list := messagesOf(t, s, "endpoint=b&type=t.1"); list != "m1@b waiting" {
			t.Errorf("chosen are %s", list)
		}
		if status, v := call(t, s, "POST", "/v1/messages/m1/cancel", ""); status != 200 || fmt.Sprint(v["messages"]) != "[map[done:false endpoint:a id:m1 state:delivered why:it has ended] map[done:true endpoint:b id:m1 state:canceled]]" {
			t.Errorf("canceled: got %d %v", status, v)
		}
		if status, v := call(t, s, "POST", "/v1/messages/send-again", `{"filter":{"endpoint":["a"],"type":"t.2"},"dry_run":true}`); status != 200 || v["done"] != 1.0 {
			t.Errorf("dry run: got %d %v", status, v)
		}
		mu.Lock()
		got = nil
		mu.Unlock()
		if status, v := call(t, s, "POST", "/v1/messages/send-again", `{"filter":{"endpoint":["a"],"type":"t.2"}}`); status != 200 || v["done"] != 1.0 || v["next"] != "" {
			t.Errorf("sent again: got %d %v", status, v)
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		if fmt.Sprint(got) != "[m2 k2 0]" {
			t.Errorf("the receiver got %v", got)
		}
		mu.Unlock()
		if _, m := call(t, s, "GET", "/v1/messages/m2", ""); len(m["deliveries"].([]any)[0].(map[string]any)["attempt_history"].([]any)) != 2 {
			t.Errorf("the history is %v", m["deliveries"])
		}
		if status, v := call(t, s, "POST", "/v1/messages/cancel", `{"filter":{"state":["waiting"]}}`); status != 200 || v["done"] != 1.0 {
			t.Errorf("canceled: got %d %v", status, v)
		}
		if list := messagesOf(t, s, "state=canceled"); list != "m2@b canceled, m1@b canceled" {
			t.Errorf("canceled are %s", list)
		}
		_, audit := call(t, s, "GET", "/v1/audit", "")
		if text := fmt.Sprint(audit["audit"]); strings.Count(text, "message-cancel") != 2 || strings.Count(text, "message-send-again") != 1 {
			t.Errorf("audit is %s", text)
		}
	})
}

// A deleted endpoint takes no messages, what waits for it is a dead letter, and its
// id can be used again.
func TestEndpointIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[string]int{}
		s, stop := start(t, Options{Transport: guarded(&mu, func(r *http.Request) (*http.Response, error) {
			sent[r.URL.Path+" "+r.Header.Get("webhook-id")]++
			return answer(200), nil
		})})
		defer stop()
		made, e := ask(t, s, "POST", "/v1/endpoints", `{"url":"https://example.com/1"}`)
		id, _ := e["id"].(string)
		if made.Code != 201 || !strings.HasPrefix(id, "ep_") || made.Header().Get("Location") != "/v1/endpoints/"+id || made.Header().Get("ETag") != `"1"` {
			t.Fatalf("made: %d %v %v", made.Code, made.Header(), e)
		}
		call(t, s, "POST", "/v1/endpoints/"+id+"/disable", "")
		for i := range 3 {
			call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"m%d","endpoint":"%s","payload":1}`, i, id))
		}
		if status, v := call(t, s, "DELETE", "/v1/endpoints/"+id, "", "If-Match", `"7"`); status != 412 {
			t.Errorf("another version: got %d %v", status, v)
		}
		if status, v := call(t, s, "DELETE", "/v1/endpoints/"+id, "", "If-Match", `"1"`); status != 204 {
			t.Errorf("got %d %v", status, v)
		}
		for what, path := range map[string]string{"shown": "", "enabled": "/enable", "tested": "/test-and-enable"} {
			method := map[bool]string{true: "GET", false: "POST"}[path == ""]
			if status, v := call(t, s, method, "/v1/endpoints/"+id+path, ""); status != 404 {
				t.Errorf("%s: got %d %v", what, status, v)
			}
		}
		if status, v := call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"endpoint":"%s","payload":1}`, id)); status != 422 {
			t.Errorf("a message: got %d %v", status, v)
		}
		for _, l := range waitLetters(t, s, 3) {
			if l.Reason != "deleted" || l.Destination != id {
				t.Errorf("the letter is %+v", l)
			}
		}
		if status, v := call(t, s, "PUT", "/v1/endpoints/"+id, `{"url":"https://example.com/2"}`); status != 200 || v["version"].(float64) < 2 {
			t.Fatalf("put again: got %d %v", status, v)
		}
		if status, v := call(t, s, "POST", "/v1/redrives", `{"filter":{"destination":"`+id+`","reason":"deleted"}}`); status != 202 {
			t.Errorf("redriven: got %d %v", status, v)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(sent) != "map[/2 m0:1 /2 m1:1 /2 m2:1]" {
			t.Errorf("sent were %v", sent)
		}
	})
}
