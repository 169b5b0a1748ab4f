package durable

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/webhook"
)

// What a decoder passes over in silence is refused, and what was refused changed nothing.
func TestBodiesAreReadStrictly(t *testing.T) {
	s, _ := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	call(t, s, "PUT", "/v1/endpoints/a", plain)
	many := func(n int, item string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(item, i)
		}
		return strings.Join(list, ",")
	}
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"a name that folds to one", "PATCH", "/v1/endpoints/a", `{"old_ſecrets":[]}`, 400, "unknown field"},
		{"another that does", "PATCH", "/v1/endpoints/a", `{"verſion":7}`, 400, "unknown field"},
		{"one that is escaped", "PATCH", "/v1/endpoints/a", `{"old_\u017fecrets":[]}`, 400, "unknown field"},
		{"the Kelvin sign", "POST", "/v1/messages", `{"endpoint":"a","\u212aey":"x","payload":1}`, 400, "unknown field"},
		{"another case", "POST", "/v1/messages", `{"endpoint":"a","Payload":1}`, 400, `unknown field "Payload": did you mean payload?`},
		{"another case within", "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","policy":{"Max_attempts":3}}`, 400, `unknown field "policy.Max_attempts"`},
		{"another case of an application", "PATCH", "/v1/applications/a", `{"Rate":1}`, 400, "unknown field"},
		{"plainly what no PATCH may name", "PATCH", "/v1/endpoints/a", `{"old_secrets":[]}`, 422, "secrets/rotate"},
		{"escaped, it is the same", "PATCH", "/v1/endpoints/a", `{"old\u005fsecrets":[]}`, 422, "secrets/rotate"},
		{"a field twice", "POST", "/v1/messages", `{"endpoint":"a","payload":1,"payload":2}`, 422, `"payload" is repeated`},
		{"twice, once escaped", "POST", "/v1/messages", `{"endpoint":"a","payload":1,"p\u0061yload":2}`, 422, `"payload" is repeated`},
		{"twice in a patch", "PATCH", "/v1/endpoints/a", `{"policy":{"max_attempts":3,"max_attempts":4}}`, 422, `"policy.max_attempts" is repeated`},
		{"twice in a list", "POST", "/v1/messages", `{"endpoint":"a","payload":1,"headers":[{"name":"X-A","name":"X-B","value":"1"}]}`, 422, `"headers[0].name" is repeated`},
		{"a key of a map twice", "PATCH", "/v1/endpoints/a", `{"policy":{"classify":{"http_404":"transient","http_404":"terminal"}}}`, 422, "is repeated"},
		{"bytes that are no text", "POST", "/v1/messages", "{\"endpoint\":\"a\",\"subject\":\"caf\xe9\",\"payload\":1}", 400, "not UTF-8"},
		{"such bytes in a payload", "POST", "/v1/messages", "{\"endpoint\":\"a\",\"payload\":\"caf\xe9\"}", 400, "not UTF-8"},
		{"such bytes in a patch", "PATCH", "/v1/endpoints/a", "{\"url\":\"https://example.com/\xe9\"}", 400, "not UTF-8"},
		{"a surrogate half", "POST", "/v1/messages", `{"endpoint":"a","subject":"\ud800","payload":1}`, 400, "subject has half of a surrogate pair"},
		{"the wrong half", "POST", "/v1/messages", `{"endpoint":"a","key":"\ud83dx\udc00","payload":1}`, 400, "surrogate"},
		{"half in a list", "PATCH", "/v1/endpoints/a", `{"secrets":["\udfff"]}`, 400, "secrets[0] has half"},
		{"a whole pair", "POST", "/v1/messages", `{"endpoint":"a","subject":"\ud83d\ude00 \\ud800","payload":1}`, 202, ""},
		{"more unknown fields than anything has", "PATCH", "/v1/endpoints/a", `{` + many(70_000, `"x%d":1`) + `}`, 400, "unknown field"},
		{"more keys than a map may have", "PATCH", "/v1/endpoints/a", `{"policy":{"classify":{` + many(2000, `"k%d":"transient"`) + `}}}`, 422, "more than 1000 fields"},
		{"more ids than a filter may have", "POST", "/v1/redrives", `{"filter":{"ids":[` + many(60_000, `"%d"`) + `]}}`, 422, "filter.ids has more than 1000 items"},
		{"more endpoints in a filter", "POST", "/v1/messages/cancel", `{"filter":{"endpoint":[` + many(60_000, `"%d"`) + `]}}`, 422, "filter.endpoint has more than 1000 items"},
		{"more states in one", "POST", "/v1/messages/cancel", `{"filter":{"state":["waiting"` + strings.Repeat(`,"waiting"`, 60_000) + `]}}`, 422, "filter.state has more than 1000 items"},
		{"as many as it may", "POST", "/v1/redrives", `{"dry_run":true,"filter":{"ids":[` + many(1000, `"%d"`) + `]}}`, 200, ""},
		{"what a payload does is its sender's", "POST", "/v1/messages", `{"endpoint":"a", "payload" : {"a":1,"a":2,"A":[{"x":"]}\"\\"},"\ud800"],"n":-1.5e3} , "type":"x"}`, 202, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, v := call(t, s, c.method, c.path, c.body)
			if detail := fmt.Sprint(v["detail"]); status != c.status || !strings.Contains(detail, c.want) {
				t.Errorf("got %d %.300s, want %d and %s", status, detail, c.status, c.want)
			}
		})
	}
	if e := one(t, s); e.Version != 1 || len(e.OldSecrets) != 0 {
		t.Errorf("what was refused wrote %+v", e)
	}
}

// A body that is read strictly has each name once, and only names that encoding/json
// reads into the same field: whatever it is, the two agree.
func FuzzStrict(f *testing.F) {
	for _, text := range []string{`{}`, `{"url":"x","policy":{"classify":{"a":"b"}}}`, `{"headers":[{"name":"a"}]}`, ` { "url" : [ ] , "id":null}`, `{"url":"\ud83d\ude00\\\""}`, `[1,[2]]`, `"x"`, `{"old_ſecrets":[]}`, `{"a":{"b":[}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if readText([]byte(text), new(webhook.Endpoint)) != nil {
			return
		}
		var plain map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &plain) != nil {
			return
		}
		for name := range plain {
			if _, known := fieldOf(reflect.TypeFor[webhook.Endpoint](), name); !known {
				t.Errorf("%q passes in %q", name, text)
			}
		}
	})
}
