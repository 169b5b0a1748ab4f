package durable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// A suspended application is refused what it sends, by each process, and sent nothing; its
// rows of the outbox wait and hold up no others; its tokens look alone. When that is
// lifted, all that has waited arrives, in the order of its key.
func TestSuspendedApplication(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, name string) {
		sent := &arrivals{}
		o := Options{Database: name, Transport: sent, Token: "the operator's own token", Poll: 20 * time.Millisecond}
		s, _ := start(t, o)
		second, _ := start(t, o)
		root := "Bearer the operator's own token"
		as := func(s *Service, auth string, want int, method, path, body string) map[string]any {
			t.Helper()
			status, v := call(t, s, method, path, body, "Authorization", auth)
			if status != want {
				t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, status, v, want)
			}
			return v
		}
		must := func(want int, method, path, body string) map[string]any {
			t.Helper()
			return as(s, root, want, method, path, body)
		}
		for _, app := range []string{"acme", "other"} {
			must(200, "PUT", "/v1/applications/"+app, `{}`)
			must(200, "PUT", "/v1/endpoints/"+app+"-e", `{"url":"https://example.com/`+app+`","ordered":true,"application":"`+app+`"}`)
		}
		acme := token(t, s, `{"name":"acme-app","scope":"application","application":"acme"}`, "Authorization", root)
		must(200, "POST", "/v1/endpoints/acme-e/disable", "")
		if err := second.Dispatcher.Load(t.Context()); err != nil { // or it might send m1
			t.Fatal(err)
		}
		must(202, "POST", "/v1/messages", `{"id":"m1","application":"acme","key":"k","payload":1}`)

		shown := must(200, "PATCH", "/v1/applications/acme", `{"suspended":true,"reason":"unpaid since May"}`)
		if shown["suspended"] != true || shown["reason"] != "unpaid since May" {
			t.Errorf("suspended, it is shown as %v", shown)
		}
		must(200, "POST", "/v1/endpoints/acme-e/enable", "")
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the other process learns of it
			status, _ := call(t, second, "POST", "/v1/messages", `{"id":"m1","endpoint":"acme-e","key":"k","payload":1}`, "Authorization", root)
			if status == 403 {
				break
			}
			if status != 200 || time.Now().After(end) { // until then it is a duplicate
				t.Fatalf("the other process responds %d", status)
			}
		}
		for _, svc := range []*Service{s, second} {
			for _, auth := range []string{root, acme} {
				for _, to := range []string{`"application":"acme"`, `"endpoint":"acme-e"`} {
					p := as(svc, auth, 403, "POST", "/v1/messages", `{"id":"m2","payload":1,`+to+`}`)
					if !strings.HasSuffix(fmt.Sprint(p["type"]), "suspended") || !strings.Contains(fmt.Sprint(p["detail"]), "unpaid since May") {
						t.Errorf("a message to %s: %v", to, p)
					}
				}
			}
			as(svc, acme, 403, "PATCH", "/v1/endpoints/acme-e", `{"rate":1}`)
			if e := as(svc, acme, 200, "GET", "/v1/endpoints/acme-e", ""); !strings.Contains(fmt.Sprint(e["held"]), "unpaid since May") {
				t.Errorf("its endpoint is shown as %v", e)
			}
		}
		if v := must(200, "GET", "/v1/endpoints/acme-e/stats", ""); v["process"].(map[string]any)["hold"] != "suspended" {
			t.Errorf("its endpoint fares %v", v)
		}
		if p := must(403, "POST", "/v1/endpoints/acme-e/test-and-enable", ""); !strings.HasSuffix(fmt.Sprint(p["type"]), "suspended") {
			t.Errorf("a test of its endpoint: %v", p)
		}
		must(200, "PUT", "/v1/applications/acme", `{"name":"Acme Corp"}`) // lifts nothing
		must(422, "PUT", "/v1/applications/acme", `{"suspended":true,"reason":"another"}`)
		must(422, "PATCH", "/v1/applications/other", `{"reason":"without being suspended"}`)

		db := outside(t, name)
		insert := func(rows string) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, application, endpoint, order_key, body) VALUES `+rows); err != nil {
				t.Fatal(err)
			}
		}
		insert(`('o1', 'acme', NULL, 'k', '1'), ('o2', NULL, 'acme-e', 'k', '1'), ('o3', 'other', NULL, 'k', '1')`)
		sent.wait(t, "o3 at /other")
		insert(`('o4', NULL, 'acme-e', 'k', '1'), ('o5', 'other', NULL, 'k', '1')`)
		sent.wait(t, "o3 at /other", "o5 at /other")
		if v := must(200, "GET", "/v1/stats", ""); fmt.Sprint(v["outbox"].(map[string]any)["aside"]) != "3" {
			t.Errorf("the outbox is %v", v["outbox"])
		}
		if list, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{}); err != nil || len(list) != 0 {
			t.Errorf("letters: %+v, %v", list, err)
		}

		if v := must(200, "PATCH", "/v1/applications/acme", `{"suspended":false}`); v["suspended"] == true || v["reason"] != nil {
			t.Errorf("lifted, it is shown as %v", v)
		}
		insert(`('o6', 'acme', NULL, 'k', '1')`)
		sent.wait(t, "m1 at /acme", "o1 at /acme", "o2 at /acme", "o3 at /other", "o4 at /acme", "o5 at /other", "o6 at /acme")
		sent.mu.Lock()
		if got := strings.Join(sent.list[2:], " "); got != "m1 at /acme o1 at /acme o2 at /acme o4 at /acme o6 at /acme" {
			t.Errorf("arrived in the order %s", got)
		}
		sent.mu.Unlock()
		as(s, acme, 202, "POST", "/v1/messages", `{"id":"m3","payload":1}`)
	})
}
