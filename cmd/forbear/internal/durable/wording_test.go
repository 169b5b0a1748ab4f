package durable

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An error names the field as it was sent, what was expected there, and nothing of this
// program; each status is the same for the same mistake.
func TestErrorsNameTheField(t *testing.T) {
	s, stop := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	defer stop()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/messages", ``, 400, "the body is empty: want a JSON object"},
		{"POST", "/v1/messages", `{"endpoint"`, 400, "the body is not valid JSON: it ends too early"},
		{"POST", "/v1/messages", `{"endpoint":x}`, 400, "the body is not valid JSON: at byte 13: "},
		{"POST", "/v1/messages", `[]`, 400, "the body: want an object, got an array"},
		{"POST", "/v1/messages", `{"endpoint":5,"payload":1}`, 400, "endpoint: want a string, got a number"},
		{"POST", "/v1/messages", `{"endpoints":["a",5],"payload":1}`, 400, "endpoints[1]: want a string, got a number"},
		{"POST", "/v1/messages", `{"endpoint":"a","payload_base64":"%"}`, 400, "payload_base64: it is not base64"},
		{"POST", "/v1/messages", `{"endpoint":"a","not_before":"soon","payload":1}`, 400, "not_before: want an RFC 3339 time such as"},
		{"POST", "/v1/messages", `{"endpont":"a","payload":1}`, 400, `unknown field "endpont": did you mean endpoint?`},
		{"POST", "/v1/messages", `{"endpoint":"none","payload":1}`, 422, `unknown endpoint "none"`},
		{"POST", "/v1/messages", `{"endpoint":"none","payload":1,"id":".."}`, 422, `id is "..", which cannot stand in a URL path`},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"max_attempts":"5"}}`, 400, "policy.max_attempts: want an integer, got a string"},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"max_attempt":5}}`, 400, `unknown field "policy.max_attempt": did you mean max_attempts?`},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"total":true}}`, 400, "policy.total: want a duration such as 500ms, 1s or 2m, got a boolean"},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"classify":{"http_404":"sometimes"}}}`, 400, "policy.classify.http_404: "},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"classify":{"htp_404":"transient"}}}`, 422, `"htp_404" is not an error type: did you mean http_404?`},
		{"PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"classify":{"http_404":"transient","http_4xx":"terminal","connection_reset":"terminal"}}}`, 200, ""},
		{"PUT", "/v1/endpoints/%2E%2E", plain, 422, "or is . or .."},
		{"PUT", "/v1/endpoints/a%2Fb", plain, 422, "without / ? # %"},
		{"PUT", "/v1/endpoints/a%00b", plain, 400, "id has control characters"},
		{"POST", "/v1/messages", `{"payload":1}`, 422, "want endpoints or an application"},
		{"POST", "/v1/messages/cancel", `{"filter":{"state":"waiting"}}`, 400, "filter.state: want an array of strings, got a string"},
		{"POST", "/v1/tokens", `{"name":"x","scope":"admin","expires_in":"soon"}`, 400, `expires_in: want a duration such as 500ms, 1s or 2m, got "soon"`},
		{"POST", "/v1/redrives/none/pause", "", 404, `redrive "none": not found`},
		{"GET", "/v1/dead-letters?after=none", "", 400, "after: want next of an earlier page"},
		{"PATCH", "/v1/endpoints/a", `{"rate":"fast"}`, 400, "rate: want a number, got a string"},
		{"GET", "/v1/messages?state=gone", "", 400, `state: want waiting, held, sending, canceling, delivered, dead or canceled, got "gone"`},
		{"GET", "/v1/messages?state=canceling", "", 200, ""},
		{"GET", "/v1/messages?limit=0", "", 400, `limit: want 1 to 1000, got "0"`},
		{"GET", "/v1/messages?endpont=a", "", 400, `unknown parameter "endpont": did you mean endpoint?`},
		{"GET", "/v1/messages?limit=1&limit=2", "", 400, "limit is given 2 times: want one"},
		{"GET", "/v1/messages?limit=1" + strings.Repeat("&state=dead", 2000), "", 400, "state is given 2000 times: want at most 1000"},
		{"GET", "/v1/messages?type=%C2%85", "", 400, "type has control characters"},
		{"GET", "/v1/messages?key=%E2%80%AE", "", 400, "key has control characters"},
		{"GET", "/v1/messages?type=%zz", "", 400, "the query cannot be parsed"},
		{"GET", "/v1/audit?x=1", "", 400, `unknown parameter "x"`},
		{"GET", "/v1/dead-letters?state=gone", "", 400, `state: want dead, redriving, resolved or discarded, got "gone"`},
		{"POST", "/v1/dead-letters/discard", `{"filter":{"event_id":"a\u0000"},"reason":"x"}`, 400, "zero character"},
		{"GET", "/v1/messages/cancel", "", 404, `message "cancel": not found`},
		{"POST", "/v1/messages/cancel/cancel", "", 404, `message "cancel": not found`},
		{"GET", "/v1/dead-letters/discard", "", 404, `dead letter "discard": not found`},
		{"GET", "/v1/messages/../endpoints", "", 404, "a part of the path is"},
		{"GET", "/v1//messages", "", 404, "a part of the path is"},
		{"DELETE", "/v1/messages", "", 405, "this path allows GET, HEAD, POST"},
		{"HEAD", "/v1/endpoints/a", "", 200, ""},
		{"HEAD", "/v1/dead-letters/stats", "", 200, ""},
		{"HEAD", "/v1/endpoints/none", "", 404, ""},
		{"POST", "/v1/tokens", `{"name":"x","scope":"application","application":"none"}`, 422, `unknown application "none"`},
	} {
		status, v := call(t, s, c.method, c.path, c.body)
		if detail := fmt.Sprint(v["detail"]); status != c.status || !strings.Contains(detail, c.want) || strings.HasPrefix(strings.ToLower(detail), strings.ToLower(http.StatusText(status))) || goWords.MatchString(detail) {
			t.Errorf("%s %s %s: got %d %s, want %d and %s", c.method, c.path, c.body, status, detail, c.status, c.want)
		}
	}
}

// An id with a slash is one all the same: it is written as %2F.
func TestIdsWithSlashes(t *testing.T) {
	s, stop := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	defer stop()
	call(t, s, "PUT", "/v1/endpoints/a", plain)
	if status, v := call(t, s, "POST", "/v1/messages", `{"id":"orders//4711","endpoint":"a","payload":1}`); status != 202 {
		t.Fatalf("%d %v", status, v)
	}
	if status, v := call(t, s, "GET", "/v1/messages/orders%2F%2F4711", ""); status != 200 || v["id"] != "orders//4711" {
		t.Errorf("%d %v", status, v)
	}
}
