package console

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/console/internal/page"
)

// deadAPI is a delivery API with one letter and one redrive. It keeps what it was asked.
type deadAPI struct {
	asked []string
	state string // of the redrive
}

const evil = `<script>alert("1")</script>`

func (a *deadAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/v1/token" {
		a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	}
	switch letter := `"id":"dlq_1","queue":"webhooks","destination":"acme","event_id":"msg_1","reason":"exhausted","error":"` + html.EscapeString(evil) + `","state":"dead","dead_lettered_at":"2026-01-31T08:00:00Z","policy":{"base_delay":"1s","cap":"1m"},"attempt_history":[{"attempt":1,"took":"1.5s","wait":"250ms"}]`; r.Method + " " + r.URL.Path {
	case "GET /v1/token":
		_, _ = io.WriteString(w, `{"name":"ada","scope":"`+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}`)
	case "GET /v1/dead-letters":
		fmt.Fprintf(w, `{"dead_letters":[{%s,"type":%q}],"next":"dlq_1"}`, letter, evil)
	case "GET /v1/dead-letters/stats":
		fmt.Fprint(w, `{"stats":[{"queue":"webhooks","reason":"exhausted","state":"dead","count":12345,"causes":[`+strings.Repeat(`{"cause":"c1","queue":"webhooks","reason":"exhausted","count":2000,"error":"no route"},`, 6)+`{"cause":"last","count":1}]}]}`)
	case "GET /v1/dead-letters/dlq_1":
		if r.URL.Query().Get("reveal") == "true" { // {"n":12345678901234567890,"t":"<script>"}
			letter += `,"payload":"eyJuIjoxMjM0NTY3ODkwMTIzNDU2Nzg5MCwidCI6IjxzY3JpcHQ+In0="`
		}
		fmt.Fprintf(w, `{%s}`, letter)
	case "GET /v1/audit":
		fmt.Fprintf(w, `{"audit":[{"at":"2026-01-31T08:00:00Z","who":"ada","action":"reveal","target":%q}],"next":"7"}`, evil)
	case "POST /v1/redrives", "POST /v1/dead-letters/discard":
		fmt.Fprint(w, `{"id":"rdr_1","count":12345,"total":12345}`)
	case "GET /v1/redrives/rdr_1":
		fmt.Fprintf(w, `{"id":"rdr_1","state":%q,"rate":10,"total":100,"begun":40,"delivered":30,"failing":5}`, cmp.Or(a.state, "running"))
	default:
		fmt.Fprint(w, `{}`)
	}
}

// console returns a function that asks for pages with a token of a scope, or without.
func (a *deadAPI) console(t *testing.T, scope string) func(method, target, form string) (int, http.Header, string) {
	h := New(Config{Admin: a, API: func() http.Handler { return a }, Logger: slog.New(slog.DiscardHandler)}).Handler()
	var cookies []*http.Cookie
	ask := func(method, target, form string) (int, http.Header, string) {
		a.asked = nil
		r := httptest.NewRequest(method, "http://localhost:1"+target, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		cookies = append(cookies, w.Result().Cookies()...)
		return w.Code, w.Header(), w.Body.String()
	}
	if scope != "" {
		ask("POST", "/sign-in", "token="+scope)
	}
	return ask
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// posted returns the hidden fields of a page, as its form would post them.
func posted(page string) url.Values {
	q := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		q.Add(m[1], html.UnescapeString(m[2]))
	}
	return q
}

// An act on all that match asks first, and then takes what it has counted: all letters of
// the filter, not those of a page, and none that has died since.
func TestActsTakeWhatWasCounted(t *testing.T) {
	for name, c := range map[string]struct{ page, answers, api, done string }{
		"redrive":   {"/dead-letters/redrive?all=true&destination=a%26b&since=24h", "rate=20&stop_ratio=0.3", "/v1/redrives", "/redrives/rdr_1"},
		"discard":   {"/dead-letters/discard?all=true&destination=a%26b&since=24h", "why=test+data", "/v1/dead-letters/discard", "/dead-letters"},
		"selection": {"/dead-letters/discard?id=dlq_1&id=dlq_2", "why=test+data", "/v1/dead-letters/discard", "/dead-letters"},
		"one":       {"/dead-letters/discard?id=dlq_1", "why=test+data", "/v1/dead-letters/discard", "/dead-letters/dlq_1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &deadAPI{}
			ask := a.console(t, "admin")
			status, _, page := ask("GET", c.page, "")
			if status != 200 || !strings.Contains(page, "12,345 letters?") || len(a.asked) != 1 || !strings.Contains(a.asked[0], `"dry_run":true`) {
				t.Fatalf("%d, asked %q: %s", status, a.asked, page)
			}
			filter := regexp.MustCompile(`"filter":\{.*?\}`)
			counted := filter.FindString(a.asked[0])
			for _, part := range []string{`"state":"dead"`, `"until":"20`} {
				if !strings.Contains(counted, part) {
					t.Errorf("counted %s, want %s in it", counted, part)
				}
			}
			status, header, page := ask("POST", strings.SplitN(c.page, "?", 2)[0], posted(page).Encode()+"&"+c.answers)
			if status != 303 || header.Get("Location") != c.done || len(a.asked) != 1 || !strings.HasPrefix(a.asked[0], "POST "+c.api+" ") {
				t.Fatalf("%d to %s, asked %q: %s", status, header.Get("Location"), a.asked, page)
			}
			if taken := filter.FindString(a.asked[0]); taken != counted || strings.Contains(a.asked[0], "dry_run") {
				t.Errorf("counted %s, and then asked %s", counted, a.asked[0])
			}
		})
	}
}

// A form that chooses nothing is no form that chooses all, and what was not asked about is
// not done.
func TestNothingIsNotAll(t *testing.T) {
	a := &deadAPI{}
	ask := a.console(t, "admin")
	for _, c := range [][3]string{
		{"GET", "/dead-letters/redrive", ""}, {"GET", "/dead-letters/discard?destination=acme", ""}, {"GET", "/dead-letters/discard?all=true", ""},
		{"GET", "/dead-letters/redrive?all=true&state=resolved", ""}, {"GET", "/dead-letters/redrive?all=true&redrive=rdr_1", ""},
		{"GET", "/dead-letters/redrive?all=true&until=tomorrow", ""}, {"GET", "/dead-letters/redrive?all=true&rate=0", ""},
		{"POST", "/dead-letters/redrive", "all=true"}, {"POST", "/dead-letters/discard", "id=dlq_1&why=x"},
	} {
		if status, _, page := ask(c[0], c[1], c[2]); status != 400 || len(a.asked) > 0 {
			t.Errorf("%v: %d, asked %q: %s", c, status, a.asked, page)
		}
	}
}

// Readers see no controls, no payload, and cannot act by hand either.
func TestReadersOnlyRead(t *testing.T) {
	for _, scope := range []string{"", "read-only"} {
		a := &deadAPI{}
		ask := a.console(t, scope)
		for _, target := range []string{"/dead-letters", "/dead-letters/dlq_1", "/redrives/rdr_1"} {
			_, _, page := ask("GET", target, "")
			_, main, _ := strings.Cut(page, `<main id="main">`)
			if strings.Contains(main, `method="post"`) || strings.Contains(main, "checkbox") || strings.Contains(main, "selected</button>") {
				t.Errorf("%s: %s", target, page)
			}
		}
		for _, c := range [][2]string{{"GET", "/dead-letters/redrive?id=dlq_1"}, {"GET", "/dead-letters/discard?id=dlq_1"}, {"POST", "/dead-letters/dlq_1/reveal"}, {"POST", "/redrives/rdr_1/cancel"}} {
			if status, _, _ := ask(c[0], c[1], ""); status != 403 || len(a.asked) > 0 {
				t.Errorf("%v: %d, asked %q", c, status, a.asked)
			}
		}
	}
}

// A payload is shown as it came, and what others wrote is text.
func TestLetterIsText(t *testing.T) {
	a := &deadAPI{}
	ask := a.console(t, "admin")
	_, _, page := ask("GET", "/dead-letters/dlq_1", "")
	if strings.Contains(page, "12345678901234567890") || !strings.Contains(page, `action="/dead-letters/dlq_1/reveal"`) || !strings.Contains(page, ">1.5s<") || !strings.Contains(page, ">250ms<") {
		t.Errorf("masked: %s", page)
	}
	status, _, page := ask("POST", "/dead-letters/dlq_1/reveal", "")
	if status != 200 || !strings.Contains(page, "&#34;n&#34;: 12345678901234567890") || !strings.HasPrefix(a.asked[0], "GET /v1/dead-letters/dlq_1?reveal=true ") {
		t.Errorf("%d, asked %q: %s", status, a.asked, page)
	}
	for _, target := range []string{"/dead-letters", "/dead-letters/dlq_1", "/audit"} {
		if _, _, page := ask("GET", target, ""); strings.Contains(page, "<script>") {
			t.Errorf("%s: %s", target, page)
		}
	}
}

// The list is the newest first and page by page, and its links keep the filter.
func TestLettersAreFiltered(t *testing.T) {
	a := &deadAPI{}
	ask := a.console(t, "admin")
	status, _, page := ask("GET", "/dead-letters?destination=acme&since=2026-01-31+08:00&state=any&after=dlq_0", "")
	want := "GET /v1/dead-letters?after=dlq_0&destination=acme&limit=50&newest=true&since=2026-01-31T08%3A00%3A00Z "
	if status != 200 || a.asked[0] != want {
		t.Errorf("%d, asked %q, want %q", status, a.asked[0], want)
	}
	for _, part := range []string{"?after=dlq_1&amp;destination=acme&amp;since=", "12,345", "cause=c1", "2 more", "choose state dead"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %q in %s", part, page)
		}
	}
	if ask("GET", "/dead-letters", ""); !strings.Contains(a.asked[0], "state=dead") {
		t.Errorf("without a state: %q", a.asked)
	}
	if ask("GET", "/audit?who=ada&until=2026-01-31&after=9", ""); a.asked[0] != "GET /v1/audit?after=9&limit=50&until=2026-01-31T00%3A00%3A00Z&who=ada " {
		t.Errorf("audit: %q", a.asked)
	}
}

// The page of a redrive follows it, and stops when there is nothing more to see.
func TestRedriveIsFollowed(t *testing.T) {
	a := &deadAPI{}
	c := New(Config{Admin: a, API: func() http.Handler { return a }})
	r := httptest.NewRequest("GET", "http://localhost/redrives/rdr_1/live", nil)
	r.SetPathValue("id", "rdr_1")
	look := c.redriveLive(r)
	for state, want := range map[string][]string{"running": {"Pause", "in about 6s", `value="35"`}, "paused": {"Resume", `max="100"`}, "stopped": {"stopped", `id="redrive-live" hx-swap-oob="true"></div>`}} {
		a.state = state
		parts, err := look(&session{Write: true})
		all := event(parts, map[string]page.Markup{})
		if err != nil || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(all, w) }) || strings.Contains(all, "redrive-live") != (state == "stopped") {
			t.Errorf("%s: %v, want %q in %s", state, err, want, all)
		}
	}
}
