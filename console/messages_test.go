package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// operator is a token that may act.
const operator = "an operator's token"

// delivering is a delivery API: operations by method and path. It keeps what it was asked.
type delivering struct {
	does  map[string]func(query url.Values, body string) string
	asked []string
}

func (d *delivering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/v1/token" {
		if r.Header.Get("Authorization") == "Bearer "+operator {
			_, _ = io.WriteString(w, `{"name":"ada","scope":"admin"}`)
			return
		}
		_, _ = io.WriteString(w, `{"name":"","scope":"admin"}`)
		return
	}
	d.asked = append(d.asked, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body))
	do := d.does[r.Method+" "+r.URL.Path]
	if do == nil {
		http.Error(w, `{"detail":"no such thing"}`, http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, do(r.URL.Query(), string(body)))
}

// site returns a console of that API, and a function that asks for its pages, as an
// operator or as someone who has not signed in.
func (d *delivering) site(t *testing.T, write bool) func(method, target string, form url.Values) *httptest.ResponseRecorder {
	c := New(Config{Admin: d, API: func() http.Handler { return d }, Logger: slog.New(slog.DiscardHandler)})
	h := c.Handler()
	var cookies []*http.Cookie
	ask := func(method, target string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost:1"+target, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if write {
		w := ask(http.MethodPost, "/sign-in", url.Values{"token": {operator}})
		if cookies = w.Result().Cookies(); len(cookies) == 0 {
			t.Fatalf("no session: %d %s", w.Code, w.Body)
		}
	}
	return ask
}

func wants(t *testing.T, w *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d", w.Code, status)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("no %q in %s", text, w.Body)
		}
	}
}

// An act takes all batches, whatever a page shows, and says what was refused, and why.
func TestActTakesAllThatMatch(t *testing.T) {
	d := &delivering{does: map[string]func(url.Values, string) string{"POST /v1/messages/cancel": func(_ url.Values, body string) string {
		var b struct{ After string }
		_ = json.Unmarshal([]byte(body), &b)
		return map[string]string{"": `{"done":1000,"next":"7"}`, "7": `{"done":999,"refused":{"it has ended":1},"next":"3"}`, "3": `{"done":2,"next":""}`}[b.After]
	}}}
	ask := d.site(t, true)
	wants(t, ask("GET", "/act/cancel?endpoint=a&state=waiting&state=dead", nil), 200, "<b>2,001</b>", "All that match")
	for _, asked := range d.asked {
		if !strings.Contains(asked, `"filter":{"endpoint":["a"],"state":["waiting"],"until":"20`) || !strings.Contains(asked, `"dry_run":true`) {
			t.Errorf("the question asked %s", asked)
		}
	}
	w := ask("POST", "/act/cancel?endpoint=a&state=waiting", nil)
	said, _ := url.QueryUnescape(w.Result().Cookies()[0].Value)
	if want := "Messages canceled: 2,001. Left as they were: 1, since it has ended."; said != want || w.Header().Get("Location") != "/messages?endpoint=a&state=waiting" {
		t.Errorf("%s: %q, want %q", w.Header().Get("Location"), said, want)
	}
	if last := d.asked[len(d.asked)-1]; len(d.asked) != 6 || !strings.Contains(last, `"after":"3"`) || !strings.Contains(last, `"dry_run":false`) {
		t.Errorf("asked %q", d.asked)
	}
}

// Without a filter, what was not asked about would be done to all.
func TestActOnAllOfNoFilterIsRefused(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		d := &delivering{}
		if w := d.site(t, true)(method, "/act/cancel?endpoint=+", nil); w.Code != 400 || len(d.asked) > 0 {
			t.Errorf("%s: %d, asked %q", method, w.Code, d.asked)
		}
	}
}

// An act that is cut short goes on where it stopped, and adds to what was done.
func TestActGoesOn(t *testing.T) {
	fails := false
	d := &delivering{does: map[string]func(url.Values, string) string{"POST /v1/messages/send-again": func(_ url.Values, body string) string {
		if fails = !fails; fails {
			return `{"done":5,"next":"7"}`
		}
		return `nonsense`
	}}}
	ask := d.site(t, true)
	w := ask("POST", "/act/send-again?state=dead", nil)
	wants(t, w, 200, "5 done so far", `value="{&#34;done&#34;:5,&#34;next&#34;:&#34;7&#34;}"`, "It stopped")
	w = ask("POST", "/act/send-again?state=dead", url.Values{"so_far": {`{"done":5,"next":"7"}`}})
	wants(t, w, 200, "10 done so far")
	if !strings.Contains(d.asked[2], `"after":"7"`) {
		t.Errorf("asked %q", d.asked)
	}
	wants(t, ask("GET", "/act/send-again?state=waiting", nil), 409)
	wants(t, ask("GET", "/act/erase?state=dead", nil), 404)
}

// A search that was cut short says how far back it has looked, and looks further.
func TestMessagesLookFurther(t *testing.T) {
	d := &delivering{does: map[string]func(url.Values, string) string{"GET /v1/messages": func(q url.Values, _ string) string {
		if q.Get("limit") == "1" {
			return `{"messages":[{"id":"m","created_at":"2026-01-31T08:00:00Z"}],"next":""}`
		}
		return `{"messages":[],"unreadable":3,"next":"9"}`
	}}}
	ask := d.site(t, false)
	wants(t, ask("GET", "/messages?type=rare", nil), 200, "Looked back to <time datetime=\"2026-01-31T08:00:00Z\"", `href="/messages?after=9&amp;looks=1&amp;type=rare" data-go`, "3 could not be compared")
	if !strings.Contains(d.asked[0], "patience="+firstLook) {
		t.Errorf("asked %q", d.asked)
	}
	w := ask("GET", fmt.Sprintf("/messages?type=rare&after=9&looks=%d", maxLooks), nil)
	wants(t, w, 200, "Look further")
	if strings.Contains(w.Body.String(), "data-go") || !strings.Contains(d.asked[2], "patience="+longLook) {
		t.Errorf("it looks on without end, or in haste: %q", d.asked)
	}
	wants(t, ask("GET", "/messages?since=yesterday", nil), 400, "since: want a time")
	if strings.Contains(w.Body.String(), "all that match") {
		t.Error("someone who may only read is offered to act")
	}
	wants(t, d.site(t, true)("GET", "/messages?type=rare&state=dead&looks=2&after=5", nil), 200, `href="/act/send-again?state=dead&amp;type=rare">Send again all that match`)
}

// A payload is masked until an operator asks for it, and its numbers stay as they are.
func TestMessageIsMasked(t *testing.T) {
	const message = `{"id":"m/1","contents":[{"endpoints":["a"],"headers":[{"name":"X-A","value":"<b>"}]%s}],"deliveries":[{"endpoint":"a","state":"dead","attempts":1,
		"attempt_history":[{"attempt":1,"at":"2026-01-31T08:00:00Z","took":"1.23456s","wait":"2s","error_type":"http_503","status":503}]}]}`
	d := &delivering{does: map[string]func(url.Values, string) string{"GET /v1/messages/m/1": func(q url.Values, _ string) string {
		if q.Get("reveal") == "true" { // {"n":12345678901234567890}
			return fmt.Sprintf(message, `,"payload_base64":"eyJuIjoxMjM0NTY3ODkwMTIzNDU2Nzg5MH0="`)
		}
		return fmt.Sprintf(message, "")
	}}}
	anyone := d.site(t, false)
	w := anyone("GET", "/messages/m%2F1", nil)
	wants(t, w, 200, "are masked. Sign in", "&lt;b&gt;", "1.23s", "http_503 (503)", "/dead-letters?event_id=m%2F1&amp;destination=a")
	for _, no := range []string{"reveal", "Send again", "Cancel"} {
		if strings.Contains(w.Body.String(), no) {
			t.Errorf("someone who may only read is offered %q", no)
		}
	}
	wants(t, anyone("POST", "/messages/m%2F1/reveal", nil), 403)
	ask := d.site(t, true)
	wants(t, ask("GET", "/messages/m%2F1", nil), 200, `action="/messages/m%2F1/reveal"`, "/act/send-again?id=m%2F1&amp;endpoint=a")
	wants(t, ask("POST", "/messages/m%2F1/reveal", nil), 200, "12345678901234567890", "JSON, indented")
}

// The pages of endpoints say why one is disabled, and what a test has shown.
func TestEndpointSaysWhy(t *testing.T) {
	const e = `{"id":"a","disable_after":"1h","n":12345678901234567890}`
	const stats = `{"endpoint":"a","url":"https://a.example/x?***","state":"disabled","disabled_by":"forbear","reason":"gone, 410","since":"2026-01-31T08:00:00Z","waiting":1000,"held":2,"sending":0,"capped":true,"oldest_age":"1h2m3s","dead_letters":3,"last_hour":{"delivered":4,"failed":5,"responses":{"5xx":5},"p50":"1ms","p99":"2ms"},"process":{"breaker":"open","held":"it refuses everything"}}`
	text := func(s string) func(url.Values, string) string { return func(url.Values, string) string { return s } }
	d := &delivering{does: map[string]func(url.Values, string) string{
		"GET /v1/stats":       text(`{"endpoints":[` + stats + `],"next":"b"}`),
		"GET /v1/endpoints/a": text(e), "GET /v1/endpoints/a/stats": text(stats),
		"POST /v1/endpoints/a/test-and-enable": text(`{"ok":false,"status":500,"error_type":"http_500","response":"<no>","enabled":false}`),
		"POST /v1/endpoints/a/disable":         text(`{}`),
	}}
	ask := d.site(t, true)
	wants(t, ask("GET", "/endpoints?q=a&state=disabled", nil), 200, "disabled</span> by forbear: gone, 410", "1,000&#43; / 2 / 0", "<td>1h2m0s</td>", "4 / 5", "https://a.example/x?***", `href="/endpoints?after=b&amp;q=a&amp;state=disabled"`)
	wants(t, ask("GET", "/endpoints/a", nil), 200, "gone, 410", "it refuses everything", "12345678901234567890", "5xx: 5", "Test, and enable")
	wants(t, ask("POST", "/endpoints/a/test-and-enable", nil), 200, "not accepted with status 500 (http_500). It responded: &lt;no&gt;")
	if w := ask("POST", "/endpoints/a/disable", url.Values{"reason": {"moved"}}); w.Code != 303 || !strings.HasSuffix(d.asked[len(d.asked)-1], `/disable {"reason":"moved"}`) {
		t.Errorf("%d, asked %q", w.Code, d.asked)
	}
	wants(t, ask("POST", "/endpoints/a/delete", nil), 404)
}
