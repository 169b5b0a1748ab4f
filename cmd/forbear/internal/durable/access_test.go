package durable

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// token makes a token and returns the header that brings it.
func token(t *testing.T, s *Service, body string, header ...string) string {
	t.Helper()
	status, made := call(t, s, "POST", "/v1/tokens", body, header...)
	text, _ := made["token"].(string)
	if status != http.StatusCreated || !strings.HasPrefix(text, "forbear_") {
		t.Fatalf("token: %d %v", status, made)
	}
	return "Bearer " + text
}

// Each token does what its scope says and nothing else, and what is of another
// application is not found.
func TestTokensDoWhatTheirScopeSays(t *testing.T) {
	s, _ := start(t, Options{Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	root := "Bearer the operator's own token"
	must := func(status int, method, path, body, auth string) map[string]any {
		t.Helper()
		got, v := call(t, s, method, path, body, "Authorization", auth)
		if got != status {
			t.Fatalf("%s %s %s: got %d %v, want %d", method, path, body, got, v, status)
		}
		return v
	}
	must(200, "PUT", "/v1/applications/acme", `{}`, root)
	must(200, "PUT", "/v1/applications/other", `{}`, root)
	must(200, "PUT", "/v1/endpoints/theirs", `{"url":"https://example.com/","application":"other"}`, root)
	must(200, "PUT", "/v1/endpoints/free", `{"url":"https://example.com/"}`, root)
	must(202, "POST", "/v1/messages", `{"id":"m1","endpoint":"theirs","payload":1}`, root)
	admin := token(t, s, `{"name":"deploy","scope":"admin"}`, "Authorization", root)
	acme := token(t, s, `{"name":"acme-app","scope":"application","application":"acme","expires_in":"30d"}`, "Authorization", admin)
	reader := token(t, s, `{"name":"board","scope":"read-only"}`, "Authorization", admin)
	acmeReader := token(t, s, `{"name":"acme-board","scope":"read-only","application":"acme"}`, "Authorization", admin)
	must(200, "PUT", "/v1/endpoints/mine", `{"url":"https://example.com/","types":["order.*"]}`, acme)
	for _, c := range []struct {
		name, method, path, body, auth string
		want                           int
	}{
		{"without a token", "GET", "/v1/endpoints", "", "", 401},
		{"with a wrong one", "GET", "/v1/endpoints", "", "Bearer forbear_wrong", 401},
		{"a message of its own", "POST", "/v1/messages", `{"id":"m2","type":"order.shipped","payload":1}`, acme, 202},
		{"a message to its endpoint", "POST", "/v1/messages", `{"id":"m3","endpoint":"mine","payload":1}`, acme, 202},
		{"a message to another's endpoint", "POST", "/v1/messages", `{"endpoint":"theirs","payload":1}`, acme, 422},
		{"a message to an endpoint of none", "POST", "/v1/messages", `{"endpoint":"free","payload":1}`, acme, 422},
		{"a message to another application", "POST", "/v1/messages", `{"application":"other","payload":1}`, acme, 403},
		{"its message", "GET", "/v1/messages/m2", "", acme, 200},
		{"another's message", "GET", "/v1/messages/m1", "", acme, 404},
		{"its endpoint", "GET", "/v1/endpoints/mine", "", acme, 200},
		{"another's endpoint", "GET", "/v1/endpoints/theirs", "", acme, 404},
		{"a change of another's endpoint", "PATCH", "/v1/endpoints/theirs", `{"rate":1}`, acme, 404},
		{"another's endpoint, replaced", "PUT", "/v1/endpoints/theirs", `{"url":"https://example.com/evil"}`, acme, 409},
		{"an endpoint for another", "PUT", "/v1/endpoints/new", `{"url":"https://example.com/","application":"other"}`, acme, 403},
		{"a stop of another's endpoint", "POST", "/v1/endpoints/theirs/disable", "", acme, 404},
		{"a test of another's endpoint", "POST", "/v1/endpoints/theirs/test-and-enable", "", acme, 404},
		{"a deletion of another's endpoint", "DELETE", "/v1/endpoints/theirs", "", acme, 404},
		{"messages to another's endpoint", "GET", "/v1/messages?endpoint=theirs", "", acme, 200},
		{"another's message, canceled", "POST", "/v1/messages/m1/cancel", "", acme, 404},
		{"another's message, sent again", "POST", "/v1/messages/m1/send-again", "", acme, 404},
		{"another's messages, canceled", "POST", "/v1/messages/cancel", `{"filter":{"endpoint":["theirs"]}}`, acme, 200},
		{"how another's endpoint fares", "GET", "/v1/endpoints/theirs/stats", "", acme, 404},
		{"how its endpoints fare", "GET", "/v1/stats", "", acme, 200},
		{"itself", "GET", "/v1/applications/acme", "", acme, 200},
		{"another application", "GET", "/v1/applications/other", "", acme, 404},
		{"a change of itself", "PATCH", "/v1/applications/acme", `{"rate":1}`, acme, 403},
		{"all applications", "GET", "/v1/applications", "", acme, 403},
		{"its letters", "GET", "/v1/dead-letters", "", acme, 200},
		{"the letters of all, counted", "GET", "/v1/dead-letters/stats", "", acme, 403},
		{"the tokens", "GET", "/v1/tokens", "", acme, 403},
		{"a token for itself", "POST", "/v1/tokens", `{"name":"x","scope":"admin"}`, acme, 403},
		{"the audit", "GET", "/v1/audit", "", acme, 403},
		{"a look", "GET", "/v1/endpoints/theirs", "", reader, 200},
		{"a look at the letters", "GET", "/v1/dead-letters", "", reader, 200},
		{"a payload", "GET", "/v1/messages/m1?reveal=true", "", reader, 403},
		{"a change by a reader", "PATCH", "/v1/endpoints/free", `{"rate":1}`, reader, 403},
		{"a message by a reader", "POST", "/v1/messages", `{"endpoint":"free","payload":1}`, reader, 403},
		{"a look of one application's reader", "GET", "/v1/endpoints/mine", "", acmeReader, 200},
		{"a look of one application's reader elsewhere", "GET", "/v1/endpoints/free", "", acmeReader, 404},
		{"a message by one application's reader", "POST", "/v1/messages", `{"payload":1}`, acmeReader, 403},
		{"anything by an admin", "PATCH", "/v1/endpoints/theirs", `{"rate":1}`, admin, 200},
	} {
		if got, v := call(t, s, c.method, c.path, c.body, "Authorization", c.auth); got != c.want {
			t.Errorf("%s: got %d %v, want %d", c.name, got, v, c.want)
		}
	}
	if list := must(200, "GET", "/v1/endpoints", "", acme)["endpoints"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != "mine" {
		t.Errorf("its list is %v", list)
	}
	if e := endpointOf(t, s, "theirs"); e.URL != "https://example.com/" || e.Application != "other" {
		t.Errorf("another's endpoint is %+v by now", e)
	}
}

// endpointOf reads an endpoint as it is stored.
func endpointOf(t *testing.T, s *Service, id string) webhook.Endpoint {
	t.Helper()
	e, err := s.DB.Webhooks().Endpoint(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The first token closes the API, whose text is nowhere but in one response; the
// audit names it; and it ends when it is revoked or expires.
func TestTokensOfTheStore(t *testing.T) {
	s, _ := start(t, Options{})
	if status, _ := call(t, s, "GET", "/v1/endpoints", ""); status != 200 {
		t.Fatalf("before the first token: %d", status)
	}
	auth := token(t, s, `{"name":"ci","scope":"admin","expires_in":"1h"}`, "X-Forbear-Actor", "ann")
	if status, _ := call(t, s, "GET", "/v1/endpoints", ""); status != 401 {
		t.Errorf("behind the first token, without it: %d", status)
	}
	if status, p := call(t, s, "POST", "/v1/tokens", `{"name":"ci","scope":"admin"}`, "Authorization", auth); status != 409 {
		t.Errorf("the name again: %d %v", status, p)
	}
	call(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/"}`, "Authorization", auth, "X-Forbear-Actor", "bob")
	status, list := call(t, s, "GET", "/v1/tokens", "", "Authorization", auth)
	if text := strings.TrimPrefix(auth, "Bearer "); status != 200 || strings.Contains(string(dumpFile(t, s)), text) || len(list["tokens"].([]any)) != 1 {
		t.Errorf("the list is %d %v, and must not have the text", status, list)
	}
	_, audit := call(t, s, "GET", "/v1/audit", "", "Authorization", auth)
	var who []string
	for _, a := range audit["audit"].([]any) {
		e := a.(map[string]any)
		who = append(who, e["action"].(string)+" by "+e["who"].(string))
	}
	if got := strings.Join(who, "; "); !strings.Contains(got, "token-create by (ann) at ") || !strings.Contains(got, "endpoint-put by ci (bob) at ") {
		t.Errorf("the audit has %s", got)
	}
	for _, bad := range []string{
		`{"scope":"admin"}`, `{"name":"a b","scope":"admin"}`, `{"name":"x","scope":"root"}`, `{"name":"x","scope":"application"}`,
		`{"name":"x","scope":"admin","application":"acme"}`, `{"name":"x","scope":"admin","expires_in":"1s"}`, `{"name":"x","scope":"admin","expires_in":"9000d"}`,
	} {
		if status, p := call(t, s, "POST", "/v1/tokens", bad, "Authorization", auth); status != 422 {
			t.Errorf("%s: %d %v", bad, status, p)
		}
	}
	if status, _ := call(t, s, "DELETE", "/v1/tokens/ci", "", "Authorization", auth); status != 204 {
		t.Errorf("revoked: %d", status)
	}
	s.tokens.exists, s.tokens.looked = true, time.Now() // as if another were left
	if status, _ := call(t, s, "GET", "/v1/endpoints", "", "Authorization", auth); status != 401 {
		t.Errorf("with a revoked token: %d", status)
	}
}

// An API that other machines reach needs a token of either kind, and one of the store
// is enough.
func TestOpenAPINeedsAToken(t *testing.T) {
	o := Options{Open: true, Logger: quiet, Database: t.TempDir() + "/forbear.db"}
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), ErrNoToken.Error()) {
		t.Fatalf("without a token: %v", err)
	}
	o.Open = false
	s, stop := start(t, o)
	token(t, s, `{"name":"ci","scope":"admin"}`)
	stop()
	o.Open = true
	s, _ = start(t, o)
	if status, _ := call(t, s, "GET", "/v1/endpoints", "", "Host", "forbear.example.com"); status != 401 {
		t.Errorf("without its token: %d", status)
	}
	// Nor does it open when there is none left: a Host is the caller's own word.
	if err := s.DB.Tokens().Revoke(t.Context(), "ci", "ann"); err != nil {
		t.Fatal(err)
	}
	s.tokens.forget()
	if status, _ := call(t, s, "GET", "/v1/endpoints", "", "Host", "localhost"); status != 401 {
		t.Errorf("behind the last token: %d", status)
	}
}

// Before a loopback address a proxy would publish what needs no token.
func TestProxiesNeedAToken(t *testing.T) {
	s, _ := start(t, Options{})
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-IP", "Via", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "CDN-Loop"} {
		if status, _ := call(t, s, "GET", "/v1/endpoints", "", name, "192.0.2.7"); status != 403 {
			t.Errorf("with %s: %d", name, status)
		}
	}
	old := httptest.NewRequest("GET", "/v1/endpoints", nil)
	old.Host, old.Proto, old.ProtoMinor = "127.0.0.1:8080", "HTTP/1.0", 0
	w := httptest.NewRecorder()
	if s.Handler.ServeHTTP(w, old); w.Code != 403 {
		t.Errorf("over HTTP/1.0: %d", w.Code)
	}
	auth := token(t, s, `{"name":"ci","scope":"admin"}`)
	if status, _ := call(t, s, "GET", "/v1/endpoints", "", "X-Forwarded-For", "192.0.2.7", "Authorization", "b"+auth[1:]); status != 200 {
		t.Errorf("with a token: %d", status)
	}
}

// References name secrets of the whole installation: an application's token can neither
// write one, nor send what an operator has referred to elsewhere, nor take more room.
func TestApplicationsHaveNoOthersSecrets(t *testing.T) {
	t.Setenv("FORBEAR_SECRET_STRIPE", "Bearer planted")
	t.Setenv("FORBEAR_SECRET_ACME", webhook.NewSecret())
	sent := &arrivals{}
	s, _ := start(t, Options{Token: "the operator's own token", Transport: sent})
	root := "Bearer the operator's own token"
	call(t, s, "PUT", "/v1/applications/globex", `{"secrets":["env:ACME"]}`, "Authorization", root)
	globex := token(t, s, `{"name":"gx","scope":"application","application":"globex"}`, "Authorization", root)
	if status, p := call(t, s, "PUT", "/v1/endpoints/given", `{"url":"https://example.com/given","application":"globex","auth":{"secret":"env:STRIPE"},"secrets":["env:ACME"],"policy":{"max_attempts":4}}`, "Authorization", root); status != 200 {
		t.Fatalf("the operator: %d %v", status, p)
	}
	for _, c := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"a plain endpoint", "PUT", "/v1/endpoints/own", `{"url":"https://example.com/own","types":["order.*"],"rate":5,"secrets":["` + webhook.NewSecret() + `"]}`, 200},
		{"a credential of another's", "PUT", "/v1/endpoints/own", `{"url":"https://example.com/own","auth":{"secret":"env:STRIPE"}}`, 403},
		{"by PATCH", "PATCH", "/v1/endpoints/own", `{"auth":{"secret":"env:STRIPE"}}`, 403},
		{"by POST", "POST", "/v1/endpoints", `{"url":"https://example.com/own","auth":{"secret":"env:STRIPE"}}`, 403},
		{"by way of a token's server", "PATCH", "/v1/endpoints/own", `{"auth":{"token_url":"https://example.com/","client_id":"x","client_secret":"env:STRIPE"}}`, 403},
		{"a key of another's", "PATCH", "/v1/endpoints/own", `{"secrets":["env:ACME"]}`, 403},
		{"a name that does not exist", "PATCH", "/v1/endpoints/own", `{"secrets":["env:NONE"]}`, 403},
		{"a certificate of another's", "PATCH", "/v1/endpoints/own", `{"tls":{"cert":"env:STRIPE","key":"env:STRIPE"}}`, 403},
		{"more room", "PATCH", "/v1/endpoints/own", `{"concurrency":1000}`, 403},
		{"no breaker", "PATCH", "/v1/endpoints/own", `{"policy":{"breaker":{"disabled":true}}}`, 403},
		{"another place for a credential", "PATCH", "/v1/endpoints/given", `{"url":"https://example.com/evil"}`, 403},
		{"another place, by PUT", "PUT", "/v1/endpoints/given", `{"url":"https://example.com/evil","auth":{"secret":"env:STRIPE"},"secrets":["env:ACME"],"policy":{"max_attempts":4}}`, 403},
		{"what else the operator's endpoint has", "PATCH", "/v1/endpoints/given", `{"types":["order.*"]}`, 200},
		{"the operator's endpoint as it is", "PUT", "/v1/endpoints/given", `{"url":"https://example.com/given","auth":{"secret":"env:STRIPE"},"secrets":["env:ACME"],"policy":{"max_attempts":4},"rate":3}`, 200},
		{"forbear's own endpoint", "PUT", "/v1/endpoints/forbear-alerts", `{"url":"https://example.com/"}`, 422},
		{"a long address", "PATCH", "/v1/endpoints/own", `{"url":"https://example.com/` + strings.Repeat("x", 3000) + `"}`, 422},
		{"more endpoints than there can be", "POST", "/v1/messages", `{"payload":1,"endpoints":["x"` + strings.Repeat(`,"x"`, 2000) + `]}`, 422},
	} {
		if got, v := call(t, s, c.method, c.path, c.body, "Authorization", globex); got != c.want {
			t.Errorf("%s: got %d %v, want %d", c.name, got, v, c.want)
		}
	}
	if e := endpointOf(t, s, "given"); e.URL != "https://example.com/given" || e.Auth == nil || e.Rate != 3 {
		t.Errorf("the operator's endpoint is %+v by now", e)
	}
}

// The id of a deleted endpoint finds its history and its letters: it stays with its
// application. Tokens go with theirs.
func TestDeletedIdsStayWithTheirApplication(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		s, _ := start(t, Options{Database: name, Token: "the operator's own token"})
		root := "Bearer the operator's own token"
		do := func(want int, auth, method, path, body string) {
			t.Helper()
			if status, v := call(t, s, method, path, body, "Authorization", auth); status != want {
				t.Errorf("%s %s %s: %d %v, want %d", method, path, body, status, v, want)
			}
		}
		for _, app := range []string{"acme", "globex"} {
			do(200, root, "PUT", "/v1/applications/"+app, `{}`)
		}
		acme := token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
		globex := token(t, s, `{"name":"gx","scope":"application","application":"globex"}`, "Authorization", root)
		do(200, root, "PUT", "/v1/endpoints/free", `{"url":"https://example.com/"}`)
		do(200, acme, "PUT", "/v1/endpoints/orders", `{"url":"https://example.com/"}`)
		do(204, root, "DELETE", "/v1/endpoints/free", "")
		do(204, acme, "DELETE", "/v1/endpoints/orders", "")
		for _, id := range []string{"free", "orders"} {
			do(409, globex, "PUT", "/v1/endpoints/"+id, `{"url":"https://example.com/mine"}`)
			do(404, globex, "GET", "/v1/endpoints/"+id, "")
		}
		do(200, acme, "PUT", "/v1/endpoints/orders", `{"url":"https://example.com/again"}`)
		do(204, acme, "DELETE", "/v1/endpoints/orders", "")
		if status, _ := call(t, s, "DELETE", "/v1/applications/acme", "", "Authorization", root, "If-Match", `"9"`); status != 412 {
			t.Errorf("another version: %d", status)
		}
		do(204, root, "DELETE", "/v1/applications/acme", "")
		do(401, acme, "GET", "/v1/endpoints", "")
		do(200, globex, "GET", "/v1/endpoints", "")
	})
}

// What an operator has disabled a tenant sees, with the reason, and does not enable: not
// by any of the ways that it has.
func TestTenantDoesNotEnableWhatTheOperatorDisabled(t *testing.T) {
	sends := atomic.Int64{}
	s, _ := start(t, Options{Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { sends.Add(1); return answer(200), nil })})
	root := "Bearer the operator's own token"
	do := func(want int, auth, method, path, body string) map[string]any {
		t.Helper()
		status, v := call(t, s, method, path, body, "Authorization", auth)
		if status != want {
			t.Errorf("%s %s %s: %d %v, want %d", method, path, body, status, v, want)
		}
		return v
	}
	do(200, root, "PUT", "/v1/applications/acme", `{}`)
	acme := token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
	do(200, acme, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/"}`)
	if e := do(200, acme, "POST", "/v1/endpoints/a/disable", `{"reason":"a pause"}`); e["disabled_by"] != "tenant" || e["reason"] != "a pause" {
		t.Errorf("disabled by its tenant: %v", e)
	}
	do(200, acme, "POST", "/v1/endpoints/a/enable", "")
	do(422, root, "POST", "/v1/endpoints/a/disable", `{"reason":"`+strings.Repeat("x", 257)+`"}`)
	do(200, root, "POST", "/v1/endpoints/a/disable", `{"reason":"it floods its own receiver"}`)
	for _, way := range []string{"enable", "test-and-enable"} {
		p := do(403, acme, "POST", "/v1/endpoints/a/"+way, "")
		if !strings.HasSuffix(fmt.Sprint(p["type"]), "disabled-by-operator") || !strings.Contains(fmt.Sprint(p["detail"]), "it floods its own receiver") {
			t.Errorf("%s: %v", way, p)
		}
	}
	do(422, acme, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","state":"enabled"}`)
	for _, field := range []string{"state", "disabled_by"} {
		do(422, acme, "PATCH", "/v1/endpoints/a", `{"`+field+`":null}`)
	}
	do(200, acme, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/new"}`)
	do(204, acme, "DELETE", "/v1/endpoints/a", "")
	if e := do(200, acme, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/"}`); e["state"] != "disabled" || e["disabled_by"] != "operator" || e["reason"] != "it floods its own receiver" {
		t.Errorf("added again, it is %v", e)
	}
	if sends.Load() != 0 {
		t.Errorf("%d messages were sent", sends.Load())
	}
	if e := do(200, root, "POST", "/v1/endpoints/a/enable", ""); e["state"] != "enabled" || e["disabled_by"] != nil || e["reason"] != nil {
		t.Errorf("enabled by the operator: %v", e)
	}
}

// A misspelt parameter is refused: passed over, it would choose everything.
func TestUnknownParametersAreRefused(t *testing.T) {
	s, _ := start(t, Options{})
	for path, want := range map[string]int{
		"/v1/messages?endpoints=a": 400, "/v1/messages?applicaton=acme": 400, "/v1/dead-letters?endpoint=a": 400,
		"/v1/dead-letters/export?endpoint=a": 400, "/v1/endpoints?reveal=true": 400, "/v1/messages?endpoint=a&limit=5": 200, "/v1/stats?application=a": 200,
	} {
		if status, v := call(t, s, "GET", path, ""); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, v, want)
		}
	}
	for _, more := range []string{"}", "]", "{}", "x"} {
		if status, _ := call(t, s, "POST", "/v1/redrives", `{"filter":{"reason":"deleted"},"dry_run":true}`+more); status != 400 {
			t.Errorf("with %s behind it: %d", more, status)
		}
	}
	if status, _ := call(t, s, "POST", "/v1/redrives", `{}`); status != 400 {
		t.Errorf("a redrive of everything: %d", status)
	}
}
