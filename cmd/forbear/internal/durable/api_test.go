package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

type document struct {
	Paths map[string]map[string]struct {
		OperationID string                     `json:"operationId"`
		RequestBody json.RawMessage            `json:"requestBody"`
		Responses   map[string]json.RawMessage `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		} `json:"schemas"`
	} `json:"components"`
}

// The document and the handlers say the same: the same operations, and answers
// with no field that the document does not know.
func TestOpenAPI(t *testing.T) {
	var doc document
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for path, ops := range doc.Paths {
		for method := range ops {
			documented[strings.ToUpper(method)+" "+path] = true
		}
	}
	s, _ := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil })})
	for _, r := range s.routes() {
		key := r.method + " " + r.path
		if !documented[key] {
			t.Errorf("%s is not documented", key)
		}
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("%s is documented and not served", key)
	}
	schema := func(path, method string, status int) string {
		raw := doc.Paths[path][strings.ToLower(method)].Responses[fmt.Sprint(status)]
		if m := regexp.MustCompile(`#/components/(?:schemas|responses)/(\w+)`).FindSubmatch(raw); m != nil {
			return string(m[1])
		}
		return ""
	}
	id := ""
	for _, c := range []struct {
		method, path, pattern, body string
		status                      int
	}{
		{"PUT", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"url":"https://example.com/","secrets":["` + webhook.NewSecret() + `"]}`, 200},
		{"PUT", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"url":"https://10.0.0.1/"}`, 422},
		{"PUT", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"url":"https://example.com/","policy":{"kind":"webhook","max_attempts":99}}`, 422},
		{"PUT", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"urll":"x"}`, 400},
		{"PATCH", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"concurrency":3}`, 200},
		{"PATCH", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"state":"disabled"}`, 422},
		{"PATCH", "/v1/endpoints/a", "/v1/endpoints/{id}", `{"urll":"x"}`, 400},
		{"PATCH", "/v1/endpoints/none", "/v1/endpoints/{id}", `{}`, 404},
		{"GET", "/v1/endpoints", "", "", 200},
		{"GET", "/v1/endpoints/a", "/v1/endpoints/{id}", "", 200},
		{"GET", "/v1/endpoints/none", "/v1/endpoints/{id}", "", 404},
		{"POST", "/v1/messages", "", `{"id":"m1","endpoint":"a","payload":{"x":1}}`, 202},
		{"POST", "/v1/messages", "", `{"id":"m1","endpoint":"a","payload":{"x":1}}`, 200},
		{"POST", "/v1/messages", "", `{"id":"m1","endpoint":"a","payload":{"x":2}}`, 409},
		{"POST", "/v1/messages", "", `{"endpoint":"none","payload":1}`, 422},
		{"POST", "/v1/messages", "", `{"endpoint":"a"}`, 400},
		{"POST", "/v1/messages", "", `{"endpoint":"a","payload":"` + strings.Repeat("x", int(maxRequest(0))) + `"}`, 413},
		{"POST", "/v1/messages", "", `{"endpoint":"a","payload":1,"idempotency_key":"` + strings.Repeat("k", 65) + `"}`, 422},
		{"GET", "/v1/messages/m1", "/v1/messages/{id}", "", 200},
		{"GET", "/v1/messages/none", "/v1/messages/{id}", "", 404},
		{"GET", "/v1/messages?state=waiting&state=dead&endpoint=a&limit=10", "/v1/messages", "", 200},
		{"GET", "/v1/messages?state=none", "/v1/messages", "", 400},
		{"GET", "/v1/messages?limit=0", "/v1/messages", "", 400},
		{"GET", "/v1/messages?since=today", "/v1/messages", "", 400},
		{"GET", "/v1/messages?after=x", "/v1/messages", "", 400},
		{"WAIT", "", "", "", 0},
		{"POST", "/v1/messages/m1/cancel", "/v1/messages/{id}/cancel", "", 200},
		{"POST", "/v1/messages/none/send-again", "/v1/messages/{id}/send-again", "", 404},
		{"POST", "/v1/messages/none/cancel", "/v1/messages/{id}/cancel", `{"endpoints":"a"}`, 400},
		{"POST", "/v1/messages/cancel", "", `{"filter":{"endpoint":["a"]},"dry_run":true}`, 200},
		{"POST", "/v1/messages/cancel", "", `{"filter":{}}`, 400},
		{"POST", "/v1/messages/cancel", "", `{"filter":{"state":["dead"]}}`, 400},
		{"POST", "/v1/messages/send-again", "", `{"filter":{"state":["canceled"]}}`, 200},
		{"GET", "/v1/dead-letters?state=dead", "/v1/dead-letters", "", 200},
		{"GET", "/v1/dead-letters?limit=x", "/v1/dead-letters", "", 400},
		{"GET", "/v1/dead-letters/stats", "", "", 200},
		{"GET", "/v1/dead-letters/export", "", "", 200},
		{"GET", "/v1/dead-letters/ID", "/v1/dead-letters/{id}", "", 200},
		{"GET", "/v1/dead-letters/ID?reveal=perhaps", "/v1/dead-letters/{id}", "", 400},
		{"POST", "/v1/redrives", "", `{"dry_run":true,"all":true}`, 200},
		{"POST", "/v1/redrives", "", `{"rate":1e9}`, 400},
		{"POST", "/v1/redrives", "", `{"filter":{"redrive":"rdr_1"}}`, 400},
		{"POST", "/v1/redrives", "", `{"filter":{"ids":["none"]}}`, 202},
		{"GET", "/v1/redrives", "", "", 200},
		{"GET", "/v1/redrives/none", "/v1/redrives/{id}", "", 404},
		{"POST", "/v1/redrives/none/pause", "/v1/redrives/{id}/pause", "", 404},
		{"POST", "/v1/dead-letters/discard", "", `{"filter":{},"reason":"test"}`, 400},
		{"POST", "/v1/dead-letters/discard", "", `{"filter":{"state":"resolved"},"reason":"test"}`, 400},
		{"POST", "/v1/dead-letters/discard", "", `{"filter":{"destination":"a"}}`, 400},
		{"POST", "/v1/dead-letters/discard", "", `{"filter":{"destination":"a"},"dry_run":true}`, 200},
		{"POST", "/v1/dead-letters/discard", "", `{"filter":{"destination":"none"},"reason":"test"}`, 200},
		{"POST", "/v1/dead-letters/ID/discard", "/v1/dead-letters/{id}/discard", `{"reason":""}`, 400},
		{"POST", "/v1/dead-letters/ID/discard", "/v1/dead-letters/{id}/discard", `{"reason":"test"}`, 200},
		{"POST", "/v1/dead-letters/ID/discard", "/v1/dead-letters/{id}/discard", `{"reason":"test"}`, 409},
		{"POST", "/v1/messages/m1/send-again", "/v1/messages/{id}/send-again", `{"endpoint":"a"}`, 200},
		{"POST", "/v1/endpoints/a/test-and-enable", "/v1/endpoints/{id}/test-and-enable", "", 200},
		{"POST", "/v1/endpoints/a/disable", "/v1/endpoints/{id}/disable", "", 200},
		{"POST", "/v1/endpoints/a/enable", "/v1/endpoints/{id}/enable", "", 200},
		{"POST", "/v1/endpoints/none/enable", "/v1/endpoints/{id}/enable", "", 404},
		{"POST", "/v1/endpoints", "", `{"url":"https://example.com/"}`, 201},
		{"POST", "/v1/endpoints", "", `{"id":"x","url":"https://example.com/"}`, 400},
		{"GET", "/v1/endpoints/a/stats", "/v1/endpoints/{id}/stats", "", 200},
		{"GET", "/v1/endpoints/none/stats", "/v1/endpoints/{id}/stats", "", 404},
		{"GET", "/v1/stats?limit=1", "/v1/stats", "", 200},
		{"GET", "/v1/stats?limit=x", "/v1/stats", "", 400},
		{"DELETE", "/v1/endpoints/a", "/v1/endpoints/{id}", "", 204},
		{"DELETE", "/v1/endpoints/a", "/v1/endpoints/{id}", "", 404},
		{"GET", "/v1/alerts", "", "", 200},
		{"GET", "/v1/alerts/health", "", "", 200},
		{"POST", "/v1/alerts/test", "", "", 200},
		{"GET", "/v1/audit", "", "", 200},
		{"GET", "/v1/openapi.json", "", "", 200},
	} {
		if c.method == "WAIT" {
			id = waitLetters(t, s, 1)[0].ID
			continue
		}
		pattern := c.pattern
		if pattern == "" {
			pattern, _, _ = strings.Cut(c.path, "?")
		}
		status, v := call(t, s, c.method, strings.Replace(c.path, "ID", id, 1), c.body)
		name := fmt.Sprintf("%s %s %.40s", c.method, c.path, c.body)
		if status != c.status {
			t.Errorf("%s: got %d %v, want %d", name, status, v, c.status)
			continue
		}
		if doc.Paths[pattern][strings.ToLower(c.method)].Responses[fmt.Sprint(status)] == nil {
			t.Errorf("%s: status %d is not documented", name, status)
		}
		known := doc.Components.Schemas[schema(pattern, c.method, status)]
		if known.Properties == nil {
			continue
		}
		for field := range v {
			if known.Properties[field] == nil {
				t.Errorf("%s: field %q is not documented", name, field)
			}
		}
		for _, field := range known.Required {
			if v[field] == nil {
				t.Errorf("%s: field %q is missing", name, field)
			}
		}
		if status >= 400 && !strings.HasPrefix(fmt.Sprint(v["type"]), "urn:forbear:problem:") {
			t.Errorf("%s: %v is no problem", name, v)
		}
	}
}

func TestAPIIsGuarded(t *testing.T) {
	if _, err := New(t.Context(), Options{Database: t.TempDir() + "/x.db", Open: true}); err == nil {
		t.Error("beyond loopback without a token")
	}
	s, _ := start(t, Options{})
	if code, _ := call(t, s, "GET", "/v1/endpoints", "", "Host", "evil.example.com"); code != 403 {
		t.Errorf("a rebound name: got %d", code)
	}
	if code, _ := call(t, s, "POST", "/v1/alerts/test", "", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("another site: got %d", code)
	}
	if code, _ := call(t, s, "DELETE", "/v1/endpoints", ""); code != 405 {
		t.Errorf("unknown method: got %d", code)
	}
	if code, _ := call(t, s, "GET", "/v1/none", ""); code != 404 {
		t.Errorf("unknown path: got %d", code)
	}
	g, _ := start(t, Options{Token: "a-token-of-some-length", Open: true})
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer a-token-of-some-length": 200} {
		if code, _ := call(t, g, "GET", "/v1/endpoints", "", "Authorization", header, "Host", "forbear.example.com"); code != want {
			t.Errorf("%q: got %d, want %d", header, code, want)
		}
	}
}

// Nothing secret is in an answer unless somebody asked on record.
func TestMasking(t *testing.T) {
	s, _ := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		resp := answer(422)
		resp.Body = io.NopCloser(strings.NewReader("planted-answer"))
		return resp, nil
	})})
	secret := webhook.NewSecret()
	put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: []string{secret}, Headers: []webhook.Header{{Name: "X-Api-Key", Value: "planted-key"}}})
	send(t, s, webhook.Message{Endpoints: []string{"a"}, Body: []byte("planted-payload"), Headers: []webhook.Header{{Name: "X-Session-Token", Value: "planted-token"}, {Name: "X-Plain", Value: "seen"}}})
	l := waitLetters(t, s, 1)[0]
	show := func(path string) string {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, path := range []string{"/v1/endpoints", "/v1/endpoints/a", "/v1/dead-letters", "/v1/dead-letters/export", "/v1/dead-letters/" + l.ID, "/v1/messages/" + l.EventID, "/v1/alerts"} {
		for _, planted := range []string{secret, "planted", "cGxhbnRlZC"} { // base64 of "planted"
			if text := show(path); strings.Contains(text, planted) {
				t.Errorf("%s shows %q: %s", path, planted, text)
			}
		}
	}
	if text := show("/v1/dead-letters/" + l.ID + "?reveal=true"); !strings.Contains(text, "cGxhbnRlZC1wYXlsb2Fk") || !strings.Contains(text, "planted-token") {
		t.Errorf("reveal shows %s", text)
	}
	if text := show("/v1/messages/" + l.EventID + "?reveal=true"); !strings.Contains(text, "planted-answer") {
		t.Errorf("reveal shows %s", text)
	}
	if text := show("/v1/audit"); !strings.Contains(text, `"reveal"`) || !strings.Contains(text, l.ID) {
		t.Errorf("the audit is %s", text)
	}
}

// A redrive whose canary fails sends no second letter; one whose letters fail
// stops at the ratio.
func TestRedriveStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		canary bool
		most   int
		why    string
	}{{"canary", true, 1, "canary"}, {"ratio", false, 15, "failed"}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				n := 0
				sends := func() int { mu.Lock(); defer mu.Unlock(); return n }
				s, stop := start(t, Options{Transport: guarded(&mu, func(*http.Request) (*http.Response, error) { n++; return answer(400), nil })})
				put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				for i := range 40 {
					send(t, s, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}})
				}
				time.Sleep(3 * time.Second)
				if n := sends(); n != 40 {
					t.Fatalf("%d sends, want 40", n)
				}
				j, err := s.Redriver.Start(t.Context(), queue.Job{Filter: queue.Filter{Queue: webhook.Queue}, By: "ann", Canary: c.canary}, "job")
				if err != nil || j.Total != 40 {
					t.Fatalf("got %+v, %v", j, err)
				}
				time.Sleep(30 * time.Second)
				j, err = s.DB.DeadLetters().Job(t.Context(), "job")
				if n := sends() - 40; err != nil || j.State != queue.JobStopped || !strings.Contains(j.Why, c.why) || n > c.most || n == 0 {
					t.Errorf("%d sends; job %+v, %v", n, j, err)
				}
				if _, v := call(t, s, "GET", "/v1/dead-letters?redrive=job", ""); len(v["dead_letters"].([]any)) != j.Begun {
					t.Errorf("its letters are %v, want %d", v, j.Begun)
				}
				stop()
			})
		})
	}
}

// An alert that no notifier takes is kept and tried again until one does.
func TestAlertsAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		down := true
		notifier := notify(func(a queue.Alert) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return fmt.Errorf("down")
			}
			got = append(got, fmt.Sprint(a.Count, " ", a.Reason))
			return nil
		})
		s, stop := start(t, Options{Poll: 5 * time.Second, Notifiers: []queue.Notifier{notifier}, Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil })})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		total := 0
		for range 30 {
			send(t, s, webhook.Message{Endpoints: []string{"a"}})
			total++
			time.Sleep(10 * time.Second)
		}
		if h := s.Alerter.Health(); h[1].Healthy || h[1].Failures == 0 {
			t.Errorf("health is %+v", h)
		}
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(15 * time.Minute)
		stop()
		mu.Lock()
		defer mu.Unlock()
		sum := 0
		for _, g := range got {
			var n int
			_, _ = fmt.Sscan(g, &n)
			sum += n
		}
		if sum != total || len(got) > 8 {
			t.Errorf("%d alerts tell of %d letters, want few alerts and %d letters: %v", len(got), sum, total, got)
		}
	})
}

type notify func(queue.Alert) error

func (notify) Name() string { return "test" }

func (f notify) Notify(_ context.Context, a queue.Alert) error {
	return f(a)
}

func TestAlertFormats(t *testing.T) {
	a := queue.Alert{ID: 7, Queue: "webhooks", Reason: "exhausted", Count: 3, Detail: `"quoted"`, First: time.Unix(1, 0)}
	for f, want := range map[queue.AlertFormat]string{
		queue.FormatPlain: `"count":3`, queue.FormatSlack: `{"text":"forbear: 3 x exhausted in queue webhooks`,
		queue.FormatAlertmanager: `"alertname":"ForbearDeadLetter"`,
	} {
		text, err := f.Encode(a)
		if err != nil || !strings.Contains(string(text), want) || !json.Valid(text) {
			t.Errorf("%s: %s, %v", f, text, err)
		}
	}
	bodies := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies <- r.URL.Path
		w.WriteHeader(500)
	}))
	defer srv.Close()
	n := &queue.HTTPNotifier{Label: "slack", URL: srv.URL + "/services/secret-token", Format: queue.FormatSlack}
	if err := n.Notify(t.Context(), a); err == nil || strings.Contains(err.Error(), "secret-token") || <-bodies != "/services/secret-token" {
		t.Errorf("got %v", err)
	}
	out := t.TempDir() + "/alert"
	c := &queue.CommandNotifier{Label: "command", Args: []string{"tee", out}}
	if err := c.Notify(t.Context(), a); err != nil {
		t.Error(err)
	}
	if err := (&queue.CommandNotifier{Label: "command", Args: []string{"false"}}).Notify(t.Context(), a); err == nil {
		t.Error("a failing command is no error")
	}
}
