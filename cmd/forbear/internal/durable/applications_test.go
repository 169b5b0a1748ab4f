package durable

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// arrivals records what came to which path, and with which signature's key.
type arrivals struct {
	mu   sync.Mutex
	list []string
}

func (a *arrivals) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, r.Header.Get("webhook-id")+" at "+r.URL.Path)
	return answer(200), nil
}

// wait waits until what is wanted has arrived, and a moment longer for what is not.
func (a *arrivals) wait(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		a.mu.Lock()
		got = slices.Sorted(slices.Values(a.list))
		a.mu.Unlock()
		if len(got) >= len(want) {
			break
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("arrived: %q, want %q", got, want)
	}
}

// A message to an application goes to each of its endpoints that subscribes to its
// type, from the API and from the outbox alike, and to no other; it says where.
func TestMessagesFanOut(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, name string) {
		sent := &arrivals{}
		s, _ := start(t, Options{Database: name, Transport: sent})
		must := func(want int, method, path, body string) map[string]any {
			t.Helper()
			status, v := call(t, s, method, path, body)
			if status != want {
				t.Fatalf("%s %s %s: %d %v", method, path, body, status, v)
			}
			return v
		}
		for _, app := range []string{"acme", "other", "bare"} {
			must(200, "PUT", "/v1/applications/"+app, `{}`)
		}
		for id, types := range map[string]string{"all": `[]`, "orders": `["order.*"]`, "shipped": `["order.shipped"]`, "invoices": `["invoice.paid"]`} {
			must(200, "PUT", "/v1/endpoints/"+id, fmt.Sprintf(`{"url":"https://example.com/%s","application":"acme","types":%s}`, id, types))
		}
		must(200, "PUT", "/v1/endpoints/theirs", `{"url":"https://example.com/theirs","application":"other"}`)
		m1 := must(202, "POST", "/v1/messages", `{"id":"m1","application":"acme","type":"order.shipped","payload":1}`)
		if fmt.Sprint(m1["endpoints"]) != "[all orders shipped]" {
			t.Errorf("m1 goes to %v", m1)
		}
		if again := must(200, "POST", "/v1/messages", `{"id":"m1","application":"acme","type":"order.shipped","payload":1}`); again["duplicate"] != true {
			t.Errorf("m1 again: %v", again)
		}
		must(409, "POST", "/v1/messages", `{"id":"m1","application":"acme","type":"order.shipped","payload":2}`)
		must(200, "PATCH", "/v1/endpoints/all", `{"types":["user.*"]}`)
		if m2 := must(202, "POST", "/v1/messages", `{"id":"m2","application":"acme","type":"ticket.opened","payload":1}`); fmt.Sprint(m2["endpoints"]) != "[]" {
			t.Errorf("m2 goes to %v", m2)
		}
		must(404, "GET", "/v1/messages/m2", "")
		if bare := must(202, "POST", "/v1/messages", `{"application":"bare","type":"x","payload":1}`); fmt.Sprint(bare["endpoints"]) != "[]" {
			t.Errorf("without endpoints: %v", bare)
		}
		must(422, "POST", "/v1/messages", `{"application":"none","type":"x","payload":1}`)
		must(422, "POST", "/v1/messages", `{"application":"acme","endpoint":"all","payload":1}`)
		must(202, "POST", "/v1/messages", `{"id":"m3","endpoint":"invoices","type":"whatever.it.is","payload":1}`)
		if _, err := outside(t, name).ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, application, type, body) VALUES
			('o1', 'acme', 'order.paid', '1'), ('o2', 'acme', 'ticket.opened', '1'), ('o3', 'none', 'order.paid', 'kept')`); err != nil {
			t.Fatal(err)
		}
		sent.wait(t, "m1 at /all", "m1 at /orders", "m1 at /shipped", "m3 at /invoices", "o1 at /orders")
		if l := waitLetters(t, s, 1); len(l) != 1 || l[0].EventID != "o3" || l[0].Destination != "application/none" || string(l[0].Payload) != "kept" {
			t.Errorf("letters are %+v", l)
		}
		// Once there is such an application, the letter's message is accepted after all.
		must(200, "PUT", "/v1/applications/none", `{}`)
		must(200, "PUT", "/v1/endpoints/late", `{"url":"https://example.com/late","application":"none"}`)
		must(202, "POST", "/v1/redrives", `{"filter":{"queue":"webhooks","reason":"invalid"}}`)
		sent.wait(t, "m1 at /all", "m1 at /orders", "m1 at /shipped", "m3 at /invoices", "o1 at /orders", "o3 at /late")
		waitState(t, s, "resolved")
		var left int
		if err := outside(t, name).QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_outbox`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left in the outbox, %v", left, err)
		}
	})
}

// Endpoints without secrets of their own sign with the application's, whose change
// counts from then on; its rate refuses what is too much; and it cannot be deleted
// from under its endpoints.
func TestApplicationsConfigureTheirEndpoints(t *testing.T) {
	var mu sync.Mutex
	verified := map[string]string{}
	secrets := map[string]string{"first": webhook.NewSecret(), "second": webhook.NewSecret(), "own": webhook.NewSecret()}
	s, _ := start(t, Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		for name, secret := range secrets {
			if webhook.Verify(secret, r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), []byte("1"), time.Now()) == nil {
				verified[r.Header.Get("webhook-id")+r.URL.Path] += name
			}
		}
		return answer(200), nil
	})})
	must := func(want int, method, path, body string) {
		t.Helper()
		if status, v := call(t, s, method, path, body); status != want {
			t.Fatalf("%s %s %s: %d %v", method, path, body, status, v)
		}
	}
	must(200, "PUT", "/v1/applications/acme", `{"secrets":["`+secrets["first"]+`"],"max_endpoints":2}`)
	must(200, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/a","application":"acme"}`)
	must(200, "PUT", "/v1/endpoints/b", `{"url":"https://example.com/b","application":"acme","secrets":["`+secrets["own"]+`"]}`)
	must(409, "PUT", "/v1/endpoints/c", `{"url":"https://example.com/c","application":"acme"}`)
	must(422, "PUT", "/v1/endpoints/c", `{"url":"https://example.com/c","application":"none"}`)
	must(422, "PATCH", "/v1/endpoints/a", `{"application":"other"}`)
	must(409, "DELETE", "/v1/applications/acme", "")
	wait := func(id string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			done := verified[id+"/a"] != "" && verified[id+"/b"] != ""
			mu.Unlock()
			if done {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s did not arrive with a signature: %v", id, verified)
			}
		}
	}
	must(202, "POST", "/v1/messages", `{"id":"m1","application":"acme","payload":1}`)
	wait("m1")
	must(200, "PATCH", "/v1/applications/acme", `{"secrets":["`+secrets["second"]+`"],"rate":0.001}`)
	must(202, "POST", "/v1/messages", `{"id":"m2","application":"acme","payload":1}`)
	wait("m2")
	mu.Lock()
	if got := fmt.Sprint(verified); got != "map[m1/a:first m1/b:own m2/a:second m2/b:own]" {
		t.Errorf("signed with %s", got)
	}
	mu.Unlock()
	w, p := ask(t, s, "POST", "/v1/messages", `{"id":"m3","application":"acme","payload":1}`)
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(fmt.Sprint(p["type"]), "rate") {
		t.Errorf("beyond the rate: %d, Retry-After %q, %v", w.Code, w.Header().Get("Retry-After"), p)
	}
	if shown, _ := ask(t, s, "GET", "/v1/applications/acme", ""); strings.Contains(shown.Body.String(), secrets["second"]) || shown.Header().Get("ETag") != `"2"` {
		t.Errorf("shown is %s, tag %s", shown.Body, shown.Header().Get("ETag"))
	}
}

// waitState waits until all letters are in a state.
func waitState(t *testing.T, s *Service, state string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		list, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(l deadletter.Letter) bool { return string(l.State) != state }) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("letters are %+v, want %s", list, state)
		}
	}
}

// Lists of endpoints go on behind an id, and are those of an application where one is
// named.
func TestEndpointsInPages(t *testing.T) {
	s, _ := start(t, Options{})
	for _, app := range []string{"acme", "other"} {
		call(t, s, "PUT", "/v1/applications/"+app, `{}`)
		for i := range 3 {
			call(t, s, "PUT", fmt.Sprintf("/v1/endpoints/%s-%d", app, i), `{"url":"https://example.com/","application":"`+app+`"}`)
		}
	}
	for _, path := range []string{"/v1/endpoints", "/v1/stats"} {
		for query, want := range map[string]string{"": "acme-0 acme-1|acme-2 other-0|other-1 other-2|", "application=other": "other-0 other-1|other-2"} {
			var pages []string
			for after := ""; ; {
				status, v := call(t, s, "GET", path+"?limit=2&"+query+"&after="+after, "")
				if status != 200 {
					t.Fatalf("%s: %d %v", path, status, v)
				}
				var ids []string
				for _, e := range v["endpoints"].([]any) {
					e := e.(map[string]any)
					ids = append(ids, fmt.Sprint(cmp.Or(e["id"], e["endpoint"])))
				}
				pages = append(pages, strings.Join(ids, " "))
				if after = v["next"].(string); after == "" {
					break
				}
			}
			if got := strings.Join(pages, "|"); got != want {
				t.Errorf("%s?%s: %s, want %s", path, query, got, want)
			}
		}
	}
	if status, _ := call(t, s, "GET", "/v1/endpoints?limit=0", ""); status != 400 {
		t.Errorf("a limit of none: %d", status)
	}
}
