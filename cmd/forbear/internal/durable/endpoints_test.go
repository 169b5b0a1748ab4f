package durable

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// ask makes one request to the API and holds its status to the document.
func ask(t *testing.T, s *Service, method, path, body string, header ...string) (*httptest.ResponseRecorder, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s %s: %s: %v", method, path, w.Body, err)
	}
	var doc document
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	if path == "/v1/endpoints/a" && doc.Paths["/v1/endpoints/{id}"][strings.ToLower(method)].Responses[fmt.Sprint(w.Code)] == nil {
		t.Errorf("%s %s: status %d is not documented", method, path, w.Code)
	}
	return w, v
}

// one returns the one endpoint as it is stored.
func one(t *testing.T, s *Service) webhook.Endpoint {
	t.Helper()
	list, err := s.DB.Webhooks().Endpoints(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v", list, err)
	}
	return list[0]
}

const plain = `{"url":"https://example.com/"}`

// What GET shows does not destroy the endpoint when it is put back: it is
// refused, and the message names each field and the way.
func TestGetThenPut(t *testing.T) {
	s, _ := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	t.Setenv(SecretPrefix+"SIGN", webhook.NewSecret())
	secret := webhook.NewSecret()
	w, _ := ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/?key=planted","secrets":["env:SIGN","`+secret+`"],"headers":[{"name":"X-Key","value":"planted"}]}`)
	if w.Code != 200 || w.Header().Get("ETag") != `"1"` {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	w, v := ask(t, s, "GET", "/v1/endpoints/a", "")
	if w.Header().Get("ETag") != `"1"` || fmt.Sprint(v["secrets"]) != "[env:SIGN ***]" || v["url"] != "https://example.com/?***" || fmt.Sprint(v["headers"]) != "[map[name:X-Key value:***]]" {
		t.Errorf("shown is %s, tag %s", w.Body, w.Header().Get("ETag"))
	}
	w, v = ask(t, s, "PUT", "/v1/endpoints/a", w.Body.String())
	detail := fmt.Sprint(v["detail"])
	if w.Code != 422 || v["type"] != "urn:forbear:problem:invalid" || w.Header().Get("ETag") != "" {
		t.Errorf("put back: got %d %s", w.Code, w.Body)
	}
	for _, want := range []string{"secrets[1] is ***", `header "X-Key" is ***`, "query of url is ***", "send the value", "PATCH"} {
		if !strings.Contains(detail, want) {
			t.Errorf("the detail lacks %q: %s", want, detail)
		}
	}
	if e := one(t, s); e.Version != 1 || e.Secrets[1] != secret || e.Headers[0].Value != "planted" {
		t.Errorf("the refused PUT wrote %+v", e)
	}
	// With nothing in it that is not shown, what GET shows can be put back.
	ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","secrets":["env:SIGN"],"rate":5}`)
	w, _ = ask(t, s, "GET", "/v1/endpoints/a", "")
	if w, v = ask(t, s, "PUT", "/v1/endpoints/a", w.Body.String(), "If-Match", w.Header().Get("ETag")); w.Code != 200 || w.Header().Get("ETag") != `"3"` || v["rate"] != 5.0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestConditions(t *testing.T) {
	s, _ := start(t, Options{})
	version := int64(0)
	for _, c := range []struct {
		name, method, id string
		header           []string
		status           int
	}{
		{"a version of none", "PUT", "a", []string{"If-Match", `"1"`}, 412},
		{"any of none", "PUT", "a", []string{"If-Match", `*`}, 412},
		{"a patch of none", "PATCH", "a", []string{"If-Match", `"1"`}, 412},
		{"a patch of any of none", "PATCH", "a", []string{"If-Match", `*`}, 412},
		{"an unconditional patch of none", "PATCH", "a", nil, 404},
		{"a new one", "PUT", "a", []string{"If-None-Match", `*`}, 200},
		{"not a new one", "PUT", "a", []string{"If-None-Match", `*`}, 412},
		{"the version", "PUT", "a", []string{"If-Match", `"1"`}, 200},
		{"the version before", "PUT", "a", []string{"If-Match", `"1"`}, 412},
		{"the version after", "PUT", "a", []string{"If-Match", `"3"`}, 412},
		{"one of a list", "PUT", "a", []string{"If-Match", `"9", "2" ,"8"`}, 200},
		{"none of a list", "PUT", "a", []string{"If-Match", `"9", "2"`}, 412},
		{"one of two lines", "PUT", "a", []string{"If-Match", `"9"`, "If-Match", `"3"`}, 200},
		{"any", "PUT", "a", []string{"If-Match", `*`}, 200},
		{"a weak tag", "PUT", "a", []string{"If-Match", `W/"5"`}, 412},
		{"a weak and a strong one", "PUT", "a", []string{"If-Match", `W/"1", "5"`}, 200},
		{"a number spelt otherwise", "PUT", "a", []string{"If-Match", `"06"`}, 412},
		{"without quotes", "PUT", "a", []string{"If-Match", `6`}, 400},
		{"half a tag", "PUT", "a", []string{"If-Match", `"6`}, 400},
		{"nothing", "PUT", "a", []string{"If-Match", ``}, 400},
		{"two without a comma", "PUT", "a", []string{"If-Match", `"6" "7"`}, 400},
		{"a tag that must not be", "PUT", "a", []string{"If-None-Match", `"6"`}, 400},
		{"there and new", "PUT", "a", []string{"If-Match", `"6"`, "If-None-Match", "*"}, 412},
		{"no condition", "PUT", "a", nil, 200},
		{"a patch of the version", "PATCH", "a", []string{"If-Match", `"7"`}, 200},
		{"a patch of the version before", "PATCH", "a", []string{"If-Match", `"7"`}, 412},
		{"a patch, weak", "PATCH", "a", []string{"If-Match", `W/"8"`}, 412},
		{"a patch of any", "PATCH", "a", []string{"If-Match", `*`}, 200},
		{"a patch that is new", "PATCH", "a", []string{"If-None-Match", `*`}, 400},
	} {
		w, v := ask(t, s, c.method, "/v1/endpoints/"+c.id, plain, c.header...)
		if w.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
		switch {
		case w.Code == 200:
			version++
			if tag := fmt.Sprintf(`"%d"`, version); w.Header().Get("ETag") != tag || v["version"] != float64(version) {
				t.Errorf("%s: tag %s, version %v; want %s", c.name, w.Header().Get("ETag"), v["version"], tag)
			}
		case w.Code == 412 && (v["type"] != "urn:forbear:problem:precondition-failed" || !strings.Contains(fmt.Sprint(v["detail"]), "nothing was written")):
			t.Errorf("%s: the problem is %v", c.name, v)
		}
	}
	if e := one(t, s); e.Version != version {
		t.Errorf("stored is version %d, want %d: a refused write wrote", e.Version, version)
	}
}

func TestPatch(t *testing.T) {
	t.Setenv(SecretPrefix+"SIGN", webhook.NewSecret())
	s, _ := start(t, Options{})
	secret := webhook.NewSecret()
	ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/?key=planted","secrets":["`+secret+`"],"headers":[{"name":"X-Key","value":"planted"},{"name":"X-B","value":"b"}],
		"rate":5,"concurrency":3,"policy":{"max_attempts":7,"classify":{"http_404":"transient"}}}`)
	first := one(t, s)
	for _, c := range []struct {
		name, body string
		status     int
		want       string // in the stored endpoint, or in the problem's detail
	}{
		{"a field", `{"rate":7.5}`, 200, `"rate":7.5`},
		{"a reset", `{"rate":null}`, 200, `"concurrency":3`},
		{"nested", `{"policy":{"max_attempts":8}}`, 200, `"policy":{"kind":"webhook","max_attempts":8,"classify":{"http_404":"transient"}}`},
		{"a nested reset", `{"policy":{"max_attempts":null}}`, 200, `"policy":{"kind":"webhook","classify":{"http_404":"transient"}}`},
		{"an array, whole", `{"headers":[{"name":"X-C","value":"c"}]}`, 200, `"headers":[{"name":"X-C","value":"c"}]`},
		{"a large number", `{"disable_after":86400000000001}`, 200, `"disable_after":86400000000001`},
		{"an object that was not there", `{"auth":{"secret":"env:SIGN"}}`, 200, `"auth":{"secret":"env:SIGN"}`},
		{"and its end", `{"auth":null}`, 200, `"url":"https://example.com/?key=planted"`},
		{"nothing", `{}`, 200, `"concurrency":3`},
		{"unknown", `{"ratee":1}`, 400, "ratee"},
		{"unknown, nested", `{"policy":{"max_attempt":1}}`, 400, "max_attempt"},
		{"spelt otherwise", `{"Rate":1}`, 400, `"Rate"`},
		{"spelt otherwise, nested", `{"policy":{"Max_attempts":8}}`, 400, `"policy.Max_attempts"`},
		{"of another type", `{"rate":"fast"}`, 400, "rate"},
		{"out of range", `{"concurrency":-1}`, 422, "concurrency"},
		{"a needed field", `{"url":null}`, 422, "url"},
		{"a placeholder", `{"secrets":["***"]}`, 422, "secrets[0] is ***"},
		{"a placeholder in the query", `{"url":"https://example.com/?***"}`, 422, "query of url is ***"},
		{"a dangling reference", `{"secrets":["env:GONE"]}`, 422, "env:GONE"},
		{"no object", `[1]`, 400, "want a JSON object"},
		{"null", `null`, 400, "want a JSON object"},
		{"no JSON", `{"rate"`, 400, "not valid JSON"},
		{"two values", `{} {}`, 400, "text after the JSON value"},
		{"the id", `{"id":"a"}`, 422, "PUT a new"},
		{"the state", `{"state":"disabled"}`, 422, "/disable"},
		{"the state, spelt otherwise", `{"State":"disabled"}`, 400, "did you mean state?"},
		{"no state", `{"state":null}`, 422, "test-and-enable"},
		{"the reason", `{"reason":"x"}`, 422, "test-and-enable"},
		{"since", `{"since":"2026-01-01T00:00:00Z"}`, 422, "test-and-enable"},
		{"failing", `{"failing_since":null}`, 422, "test-and-enable"},
		{"held", `{"held":""}`, 422, "test-and-enable"},
		{"the version", `{"version":1}`, 422, "If-Match"},
	} {
		before := one(t, s)
		w, v := ask(t, s, "PATCH", "/v1/endpoints/a", c.body, "Content-Type", "application/merge-patch+json")
		e := one(t, s)
		text, _ := json.Marshal(e)
		if w.Code != 200 {
			if e.Version != before.Version {
				t.Errorf("%s: refused, and written", c.name)
			}
			text = fmt.Append(nil, v["detail"])
		}
		if w.Code != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: got %d %s, stored %s; want %d and %s", c.name, w.Code, w.Body, text, c.status, c.want)
		}
		if strings.Contains(w.Body.String(), "planted") || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s shows %s", c.name, w.Body)
		}
		if e.Secrets[0] != secret || e.URL != first.URL {
			t.Fatalf("%s: what was left out is gone: %+v", c.name, e)
		}
	}
	if e := one(t, s); e.Rate != 0 || e.Auth != nil {
		t.Errorf("null did not reset: %+v", e)
	}
}

func TestPatchMediaType(t *testing.T) {
	s, _ := start(t, Options{})
	ask(t, s, "PUT", "/v1/endpoints/a", plain)
	for kind, want := range map[string]int{
		"application/merge-patch+json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"application/json-patch+json": 415, "application/x-www-form-urlencoded": 200, "text/plain": 415, ";": 415,
	} {
		w, v := ask(t, s, "PATCH", "/v1/endpoints/a", `{"rate":1}`, "Content-Type", kind)
		if w.Code != want || w.Code == 415 && (w.Header().Get("Accept-Patch") != "application/merge-patch+json" || v["type"] != "urn:forbear:problem:unsupported-media-type") {
			t.Errorf("%s: got %d %s", kind, w.Code, w.Body)
		}
	}
}

// The audit names the fields that a patch changed, and no values.
func TestPatchIsAudited(t *testing.T) {
	s, _ := start(t, Options{})
	ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","rate":5,"policy":{"max_attempts":7}}`)
	ask(t, s, "PATCH", "/v1/endpoints/a", `{"url":"https://example.com/?planted","rate":5,"headers":[{"name":"X-Planted","value":"planted"}],"policy":{"max_attempts":6}}`, "X-Forbear-Actor", "ann")
	list, err := s.DB.DeadLetters().AuditTrail(t.Context(), 10)
	i := slices.IndexFunc(list, func(e queue.Entry) bool { return e.Action == "endpoint-patch" })
	if err != nil || i < 0 {
		t.Fatalf("the audit is %+v, %v", list, err)
	}
	if e := list[i]; e.Target != "a" || e.Detail != "version 2: headers, policy.max_attempts, url" || !strings.HasPrefix(e.Who, "(ann) at ") {
		t.Errorf("the audit has %+v", e)
	}
}

// Many patches of different fields at once: each of them is there.
func TestConcurrentPatches(t *testing.T) {
	s, _ := start(t, Options{})
	ask(t, s, "PUT", "/v1/endpoints/a", plain)
	patches := []string{`{"rate":5}`, `{"concurrency":4}`, `{"ordered":true}`, `{"format":"cloudevents"}`, `{"disable_after":3600000000000}`, `{"policy":{"max_attempts":8}}`, `{"policy":{"strict":true}}`, `{"headers":[{"name":"X-A","value":"a"}]}`}
	var wg sync.WaitGroup
	for _, p := range patches {
		wg.Go(func() {
			if w, _ := ask(t, s, "PATCH", "/v1/endpoints/a", p); w.Code != 200 {
				t.Errorf("%s: got %d %s", p, w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	e := one(t, s)
	if e.Rate != 5 || e.Concurrency != 4 || !e.Ordered || e.Format != webhook.FormatStructured || e.DisableAfter != 3600e9 || e.Policy.MaxAttempts != 8 || !e.Policy.Strict || len(e.Headers) != 1 {
		t.Errorf("a patch is lost: %+v", e)
	}
	if e.Version != int64(len(patches)+1) {
		t.Errorf("version %d, want %d", e.Version, len(patches)+1)
	}
}

// Of many that expect the same version one wins, and the others are told.
func TestConcurrentConditionalWrites(t *testing.T) {
	s, _ := start(t, Options{})
	ask(t, s, "PUT", "/v1/endpoints/a", plain)
	var mu sync.Mutex
	codes := map[int]int{}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			method := []string{"PUT", "PATCH"}[i%2]
			w, _ := ask(t, s, method, "/v1/endpoints/a", fmt.Sprintf(`{"url":"https://example.com/%d"}`, i), "If-Match", `"1"`)
			mu.Lock()
			codes[w.Code]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if codes[200] != 1 || codes[412] != 11 || one(t, s).Version != 2 {
		t.Errorf("got %v at version %d, want one 200", codes, one(t, s).Version)
	}
}

// A disabled endpoint stays disabled and says so, and a state is not changed
// by putting another.
func TestPutTellsTheState(t *testing.T) {
	s, _ := start(t, Options{})
	if w, _ := ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","state":"disabled"}`); w.Code != 422 {
		t.Errorf("a new one that is disabled: got %d %s", w.Code, w.Body)
	}
	ask(t, s, "PUT", "/v1/endpoints/a", plain)
	ask(t, s, "POST", "/v1/endpoints/a/disable", "", "X-Forbear-Actor", "ann")
	for _, method := range []string{"PUT", "PATCH"} {
		w, v := ask(t, s, method, "/v1/endpoints/a", plain)
		if w.Code != 200 || v["state"] != "disabled" || !strings.HasPrefix(fmt.Sprint(v["reason"]), "disabled by (ann)") || v["since"] == nil {
			t.Errorf("%s on a disabled endpoint: got %d %s", method, w.Code, w.Body)
		}
	}
	for state, want := range map[string]int{"disabled": 200, "": 200, "enabled": 422, "paused": 422} {
		w, v := ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","state":"`+state+`"}`)
		if w.Code != want || want == 422 && !strings.Contains(fmt.Sprint(v["detail"]), "test-and-enable") {
			t.Errorf("state %q: got %d %s", state, w.Code, w.Body)
		}
	}
	// The other read-only fields of what GET shows are ignored.
	if w, v := ask(t, s, "PUT", "/v1/endpoints/a", `{"id":"a","url":"https://example.com/","reason":"x","since":"2020-01-01T00:00:00Z","version":99,"failing_since":"2020-01-01T00:00:00Z","held":"x"}`); w.Code != 200 || v["version"] == 100.0 || v["held"] != nil || v["failing_since"] != nil {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A reference that names nothing is refused when it is written, by its name.
func TestPutLooksReferencesUp(t *testing.T) {
	t.Setenv(SecretPrefix+"PLAIN", "planted-secret")
	s, _ := start(t, Options{SecretsDir: t.TempDir()})
	for _, c := range []struct{ body, want string }{
		{`"secrets":["env:GONE"]`, "env:GONE"},
		{`"secrets":["file:gone"]`, "file:gone"},
		{`"secrets":["env:PLAIN"]`, "env:PLAIN"}, // nothing to sign with
		{`"auth":{"secret":"env:GONE"}`, "env:GONE"},
		{`"auth":{"token_url":"https://token.example.com/","client_id":"c","client_secret":"env:GONE"}`, "env:GONE"},
	} {
		w, v := ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/",`+c.body+`}`)
		if w.Code != 422 || !strings.Contains(fmt.Sprint(v["detail"]), c.want) || strings.Contains(w.Body.String(), "planted") {
			t.Errorf("%s: got %d %s", c.body, w.Code, w.Body)
		}
	}
	if list, err := s.DB.Webhooks().Endpoints(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("stored is %+v, %v", list, err)
	}
}
