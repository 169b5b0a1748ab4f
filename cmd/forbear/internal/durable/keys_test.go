package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
)

// hold makes a record of a key whose outcome is unknown, and returns its fence.
func hold(t *testing.T, s *Service, scope, key string) int64 {
	t.Helper()
	c := idempotency.Claim{ID: idempotency.ID{Scope: scope, Key: idempotency.Digest(key)}, Operation: "POST /charges", Owner: "o", Lease: time.Minute, Retention: time.Hour}
	v, err := s.DB.Idempotency().Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DB.Idempotency().Hold(t.Context(), idempotency.Token{ID: c.ID, Owner: "o", Fence: v.Record.Fence}, "it broke off"); err != nil {
		t.Fatal(err)
	}
	return v.Record.Fence
}

// Held keys are listed page by page, found by the customer's key, and settled in one of
// two ways, with a line in the audit trail that has neither the key nor a body.
func TestKeys(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database})
		defer stop()
		fence := int64(0)
		for i := range 5 {
			fence = hold(t, s, fmt.Sprintf("tenant %d", i%2), fmt.Sprintf("key-%d", i))
		}
		hold(t, s, idempotency.EventScope+"group", "event")
		var seen []string
		for after := ""; ; {
			status, page := call(t, s, "GET", "/v1/keys?state=held&limit=2&after="+after, "")
			if status != 200 {
				t.Fatalf("%d %v", status, page)
			}
			for _, k := range page["keys"].([]any) {
				seen = append(seen, k.(map[string]any)["scope"].(string))
			}
			if after = page["next"].(string); after == "" {
				break
			}
		}
		if want := []string{"event:group", "tenant 0", "tenant 0", "tenant 0", "tenant 1", "tenant 1"}; !slices.Equal(seen, want) {
			t.Errorf("the pages have %v, want %v", seen, want)
		}
		for body, want := range map[string]int{`{"key":"key-3"}`: 1, `{"key":"key-3","scope":"tenant 0"}`: 0, `{"key":"event","source":"s"}`: 0, `{"key":"none"}`: 0} {
			if status, v := call(t, s, "POST", "/v1/keys/find", body); status != 200 || len(v["keys"].([]any)) != want {
				t.Errorf("%s: %d %v, want %d", body, status, v, want)
			}
		}
		settle := func(want int, format string, args ...any) map[string]any {
			t.Helper()
			body := fmt.Sprintf(format, args...)
			status, v := call(t, s, "POST", "/v1/keys/settle", body)
			if status != want {
				t.Errorf("%s: %d %v, want %d", body, status, v, want)
			}
			return v
		}
		of := func(i int) string {
			return fmt.Sprintf(`"scope":"tenant %d","key":%q`, i%2, idempotency.Digest(fmt.Sprintf("key-%d", i)))
		}
		settle(400, `{%s,"why":"w"}`, of(0))
		settle(400, `{%s,"why":"w","undone":true,"done":{"status":200}}`, of(0))
		settle(400, `{%s,"why":" ","undone":true}`, of(0))
		settle(400, `{%s,"why":"w","done":{"status":503}}`, of(0))
		settle(400, `{%s,"why":"w","done":{"status":200,"body_base64":"aGk="}}`, of(0))
		settle(400, `{"scope":"tenant 0","key":"key-0","why":"w","undone":true}`)
		settle(400, `{"scope":"event:group","key":%q,"why":"w","done":{"status":200,"headers":[{"name":"A","value":"b"}]}}`, idempotency.Digest("event"))
		settle(404, `{"scope":"none","key":%q,"why":"w","undone":true}`, idempotency.Digest("none"))
		settle(409, `{%s,"why":"w","undone":true,"fence":%d}`, of(4), fence+100)
		done := settle(200, `{%s,"why":"in the ledger","done":{"status":201,"headers":[{"name":"content-type","value":"text/plain"}],"body_base64":"c2VjcmV0"}}`, of(0))
		if got := fmt.Sprintf("%v %v %v", done["state"], done["status"], done["headers"]); got != "completed 201 [Content-Type]" {
			t.Errorf("done is %s", got)
		}
		if v := settle(200, `{%s,"why":"not in the ledger","undone":true,"fence":%d}`, of(4), fence); v["state"] != "released" {
			t.Errorf("undone is %v", v)
		}
		settle(409, `{%s,"why":"w","undone":true}`, of(4))
		_, trail := call(t, s, "GET", "/v1/audit?action=settle", "")
		text, _ := json.Marshal(trail)
		for _, want := range []string{"done, 201, headers Content-Type, body of 6 bytes, sha256", ": in the ledger", "undone: not in the ledger"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the audit has no %q: %s", want, text)
			}
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "key-0") {
			t.Errorf("the audit has the body or the key: %s", text)
		}
	})
}

// A record that cannot be recorded in the trail stays held.
func TestSettleWithoutAuditChangesNothing(t *testing.T) {
	s, stop := start(t, Options{})
	defer stop()
	hold(t, s, "a", "k")
	id := idempotency.ID{Scope: "a", Key: idempotency.Digest("k")}
	broken := Records{s.DB.Idempotency(), func(context.Context, queue.Entry) error { return errors.New("the disk is full") }}
	if err := broken.Settle(t.Context(), id, idempotency.Resolution{By: "ann", Why: "w"}); err == nil {
		t.Error("it was settled without a trace")
	}
	if r, err := s.DB.Idempotency().Get(t.Context(), id); err != nil || r.State != idempotency.Held {
		t.Errorf("it is %v %v", r.State, err)
	}
}

// A caller learns who it is, whatever its scope, and keys are the operator's.
func TestCallerAndItsKeys(t *testing.T) {
	s, stop := start(t, Options{})
	defer stop()
	if status, v := call(t, s, "GET", "/v1/token", ""); status != 200 || fmt.Sprint(v) != "map[name: scope:admin]" {
		t.Errorf("without a token: %d %v", status, v)
	}
	call(t, s, "PUT", "/v1/applications/acme", `{}`)
	root := token(t, s, `{"name":"root","scope":"admin"}`)
	board := token(t, s, `{"name":"board","scope":"read-only"}`, "Authorization", root)
	acme := token(t, s, `{"name":"acme","scope":"application","application":"acme"}`, "Authorization", root)
	for auth, want := range map[string]string{root: "root admin <nil>", board: "board read-only <nil>", acme: "acme application acme"} {
		status, v := call(t, s, "GET", "/v1/token", "", "Authorization", auth)
		expires, err := time.Parse(time.RFC3339, fmt.Sprint(v["expires"]))
		if got := fmt.Sprint(v["name"], " ", v["scope"], " ", v["application"]); status != 200 || got != want || err != nil || expires.Before(time.Now().Add(24*time.Hour)) {
			t.Errorf("got %d %s %v, want %s", status, got, v["expires"], want)
		}
	}
	for _, c := range []struct {
		auth, method, path string
		want               int
	}{
		{board, "GET", "/v1/keys", 200},
		{board, "POST", "/v1/keys/settle", 403},
		{acme, "GET", "/v1/keys", 403},
		{acme, "POST", "/v1/keys/find", 403},
		{acme, "GET", "/v1/instances", 403},
	} {
		if status, v := call(t, s, c.method, c.path, "{}", "Authorization", c.auth); status != c.want {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, status, v, c.want)
		}
	}
}
