package console

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// The tokens that a fake knows.
const (
	adminToken       = "secret-of-the-admin"
	readerToken      = "secret-of-the-reader"
	applicationToken = "secret-of-the-application"
)

// fake is the two APIs with a console in front of them, and a browser's cookies.
type fake struct {
	*Console
	handler http.Handler
	mu      sync.Mutex // of what follows, while a page is live
	// answers are the bodies that the APIs respond with, by method and path. One that
	// begins with a status and a space has that status.
	answers map[string]string
	// calls are the requests of the console, with their bodies.
	calls []string
	// tokens are what GET /v1/token says; "" is in it where none is demanded.
	tokens  map[string]string
	log     bytes.Buffer
	cookies map[string]string
}

// newFake returns a console for callers on this machine that demands no token.
func newFake(t *testing.T, change ...func(*Config)) *fake {
	t.Helper()
	f := &fake{cookies: map[string]string{}, answers: map[string]string{"GET /admin/status": `{}`}, tokens: map[string]string{
		"": `{"name":"","scope":"admin"}`, adminToken: `{"name":"ada","scope":"admin"}`, readerToken: `{"name":"rea","scope":"read-only"}`,
		applicationToken: `{"name":"app","scope":"application","application":"shop"}`,
	}}
	config := Config{Admin: f, API: func() http.Handler { return f }, Logger: slog.New(slog.NewTextHandler(&f.log, nil))}
	for _, c := range change {
		c(&config)
	}
	f.Console = New(config)
	f.handler = f.Handler()
	return f
}

// ServeHTTP is both APIs.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer, ok := f.answers[r.Method+" "+r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		who, known := f.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !known {
			answer, ok = "401 {}", true
		} else if r.URL.Path == "/v1/token" {
			answer, ok = who, true
		}
	}
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/v1/token" {
		f.calls = append(f.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	}
	status := http.StatusOK
	if !ok {
		answer = `404 {"detail":"no such thing"}`
	}
	if code, rest, found := strings.Cut(answer, " "); found && len(code) == 3 && code > "3" && code < "6" {
		status, answer = int(code[0]-'0')*100+int(code[1]-'0')*10+int(code[2]-'0'), rest
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// do sends a request with the cookies, and keeps those of the response. Headers are pairs.
func (f *fake) do(method, target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	if strings.HasPrefix(target, "/") {
		target = "http://localhost:8081" + target
	}
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for name, value := range f.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		f.cookies[c.Name] = c.Value
		if c.MaxAge < 0 {
			delete(f.cookies, c.Name)
		}
	}
	return w
}

func (f *fake) get(target string, headers ...string) *httptest.ResponseRecorder {
	return f.do(http.MethodGet, target, nil, headers...)
}

// signedIn signs in with a token.
func (f *fake) signedIn(t *testing.T, token string) *fake {
	t.Helper()
	if w := f.do(http.MethodPost, "/sign-in", url.Values{"token": {token}}); w.Code != http.StatusSeeOther {
		t.Fatalf("sign-in: %d %s", w.Code, w.Body)
	}
	return f
}

// holds fails where a page has not the status, or not the text.
func holds(t *testing.T, w *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("no %q in %s", text, w.Body)
		}
	}
}
