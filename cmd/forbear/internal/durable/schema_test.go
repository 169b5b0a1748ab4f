package durable

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// schema is what the test looks at in a schema of openapi.json.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Format     string             `json:"format"`
	Pattern    string             `json:"pattern"`
	AllOf      []schema           `json:"allOf"`
	OneOf      []schema           `json:"oneOf"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Additional any                `json:"additionalProperties"`
}

// The schemas have the fields of the Go types that are sent and read, each of the
// type that JSON has for it: a client that is generated from them can read all.
func TestSchemasAreTheTypes(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	c := schemaCheck{t, doc.Components.Schemas}
	for name, of := range map[string]reflect.Type{
		"Header": reflect.TypeFor[webhook.Header](), "NewMessage": reflect.TypeFor[newMessage](), "Accepted": reflect.TypeFor[webhook.Accepted](),
		"Attempt": reflect.TypeFor[deadletter.Attempt](), "Delivery": reflect.TypeFor[store.DeliveryInfo](), "Auth": reflect.TypeFor[webhook.Auth](),
		"Policy": reflect.TypeFor[forbear.Policy](), "Endpoint": reflect.TypeFor[shownEndpoint](), "TestResult": reflect.TypeFor[dispatch.TestResult](),
		"Letter": reflect.TypeFor[deadletter.Letter](), "CauseStat": reflect.TypeFor[queue.CauseStat](), "Filter": reflect.TypeFor[queue.Filter](),
		"Message": reflect.TypeFor[messageShown](), "TestMessage": reflect.TypeFor[testMessage](), "MessageContent": reflect.TypeFor[store.MessageContent](), "MessageInfo": reflect.TypeFor[store.MessageInfo](), "MessageList": reflect.TypeFor[messageList](), "MessageFilter": reflect.TypeFor[store.MessageFilter](),
		"MessageResult": reflect.TypeFor[store.MessageResult](), "OneMessage": reflect.TypeFor[oneMessage](), "ManyMessages": reflect.TypeFor[manyMessages](), "ManyResult": reflect.TypeFor[manyResult](),
		"AttemptStats": reflect.TypeFor[store.AttemptStats](), "ProcessStats": reflect.TypeFor[dispatch.LaneStats](), "OutboxStats": reflect.TypeFor[store.OutboxStats](),
		"EndpointStats": reflect.TypeFor[endpointStats](), "StatsList": reflect.TypeFor[statsList](),
		"NewRedrive": reflect.TypeFor[newRedrive](), "DiscardMany": reflect.TypeFor[discardMany](), "Application": reflect.TypeFor[shownApplication](),
		"NewToken": reflect.TypeFor[NewToken](), "Token": reflect.TypeFor[sqlstore.Token](), "MadeToken": reflect.TypeFor[MadeToken](),
	} {
		if c.schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
			continue
		}
		c.compare(name, of, c.schemas[name])
	}
	// A patch has what can be written, and nothing else.
	patch, endpoint := c.schemas["EndpointPatch"].Properties, c.schemas["Endpoint"].Properties
	for name := range endpoint {
		if writable := checkPatch(map[string]any{name: 1}) == nil; writable != (patch[name] != nil) {
			t.Errorf("EndpointPatch: %s: writable %v, documented %v", name, writable, patch[name] != nil)
		}
	}
}

// schemaCheck compares types with the schemas of the document.
type schemaCheck struct {
	t       *testing.T
	schemas map[string]*schema
}

// compare reports where a schema is not that of a type.
func (c schemaCheck) compare(at string, of reflect.Type, s *schema) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[time.Duration]() {
		if c.follow(s).Pattern == "" {
			c.t.Errorf("%s is a duration and has no pattern", at)
		}
		return
	}
	s = c.follow(s)
	want, format := kindOf(of)
	switch {
	case want == "":
		return // any JSON
	case s.Type != want || s.Format != format:
		c.t.Errorf("%s is documented as %v %q, and is %s %q", at, s.Type, s.Format, want, format)
	case want == "object" && of.Kind() == reflect.Struct:
		c.fields(at, of, s)
	case want == "array":
		c.compare(at+"[]", of.Elem(), s.Items)
	}
}

// fields compares the fields of a struct with properties.
func (c schemaCheck) fields(at string, of reflect.Type, s *schema) {
	known := map[string]bool{}
	for _, f := range jsonFields(of) {
		name := f.name
		if f.kind == reflect.TypeFor[time.Duration]() {
			name = publicName(name)
		}
		known[name] = true
		if s.Properties[name] == nil {
			c.t.Errorf("%s.%s is not documented", at, name)
			continue
		}
		c.compare(at+"."+name, f.kind, s.Properties[name])
	}
	for name := range s.Properties {
		if !known[name] {
			c.t.Errorf("%s.%s is documented and not there", at, name)
		}
	}
}

// follow returns what a schema refers to.
func (c schemaCheck) follow(s *schema) *schema {
	for s.Ref != "" || len(s.AllOf) == 1 {
		if s.Ref == "" {
			s = &s.AllOf[0]
			continue
		}
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		if s = c.schemas[name]; s == nil {
			c.t.Fatalf("there is no schema %s", name)
		}
	}
	return s
}

// kindOf returns the type and the format that JSON has for a Go type.
func kindOf(t reflect.Type) (kind, format string) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "string", "date-time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "", ""
	case t == reflect.TypeFor[[]byte]():
		return "string", "byte"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string", ""
	}
	switch t.Kind() {
	case reflect.String:
		return "string", ""
	case reflect.Bool:
		return "boolean", ""
	case reflect.Float64:
		return "number", "double"
	case reflect.Slice:
		return "array", ""
	case reflect.Struct, reflect.Map:
		return "object", ""
	default:
		return "integer", ""
	}
}

// Durations are texts as people write them, in responses as in requests, and what
// is stored and exported keeps its form.
func TestDurationsAreTexts(t *testing.T) {
	s, stop := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil })})
	defer stop()
	body := `{"url":"https://example.com/","secrets":["` + webhook.NewSecret() + `"],"disable_after":"2d",
		"policy":{"max_attempts":3,"total":"90s","per_attempt":2000000000,"body_idle":"off","backoff":{"schedule":["0s","5s","1m30s"]},"breaker":{"open_for":"30s"}}}`
	status, e := call(t, s, "PUT", "/v1/endpoints/a", body)
	if status != 200 {
		t.Fatalf("got %d %v", status, e)
	}
	const want = `map[backoff:map[schedule:[0s 5s 1m30s]] body_idle:off breaker:map[open_for:30s] kind:webhook max_attempts:3 per_attempt:2s total:1m30s]`
	if e["disable_after"] != "48h" || fmt.Sprint(e["policy"]) != want {
		t.Errorf("got %v, %v, want %s", e["disable_after"], e["policy"], want)
	}
	// What was read can be put again, and a patch of one field leaves the others.
	status, e = call(t, s, "PATCH", "/v1/endpoints/a", `{"policy":{"total":"2m","breaker":{"open_for":null}}}`)
	const patched = `map[backoff:map[schedule:[0s 5s 1m30s]] body_idle:off kind:webhook max_attempts:3 per_attempt:2s total:2m]`
	if status != 200 || fmt.Sprint(e["policy"]) != patched {
		t.Errorf("patched: got %d %v, want %s", status, e["policy"], patched)
	}
	if stored := one(t, s); stored.Policy.Total != 2*time.Minute || stored.DisableAfter != 48*time.Hour || stored.Policy.BodyIdle != -1 {
		t.Errorf("stored is %+v", stored.Policy)
	}
	for _, bad := range []string{`"5 s"`, `"soon"`, `true`, `"off"`} {
		status, p := call(t, s, "PATCH", "/v1/endpoints/a", `{"policy":{"total":`+bad+`}}`)
		if status != 400 {
			t.Errorf("total %s: got %d %v", bad, status, p)
		}
	}
	call(t, s, "POST", "/v1/messages", `{"id":"m1","endpoint":"a","payload":1}`)
	waitLetters(t, s, 1)
	_, m := call(t, s, "GET", "/v1/messages/m1", "")
	a := m["deliveries"].([]any)[0].(map[string]any)["attempt_history"].([]any)[0].(map[string]any)
	if took, ok := a["took"].(string); !ok {
		t.Errorf("took is %v", a["took"])
	} else if _, err := time.ParseDuration(took); err != nil {
		t.Error(err)
	}
}
