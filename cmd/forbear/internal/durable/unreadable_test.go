package durable

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
)

// sealedWorld is a database with two keys, and a service at work that lacks one of them.
type sealedWorld struct {
	*Service
	rules rules
	under func(keys ...sqlstore.Key) (*Service, func()) // another process

	known, missing sqlstore.Key
	letter         string // one that is sealed under the missing key
}

// newSealedWorld makes one. Under the missing key are the applications sealed and acme,
// the endpoints alone, of and mine, and the messages m2, which is dead, and m3, which
// waits; under the other the endpoint readable and the message m1, which is dead.
func newSealedWorld(t *testing.T, database string) *sealedWorld {
	log := &logged{}
	w := &sealedWorld{known: sqlstore.NewKey("0ld0ld01"), missing: sqlstore.NewKey("ne1ne1e1")}
	w.under = func(keys ...sqlstore.Key) (*Service, func()) {
		c, err := sqlstore.NewCipher(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return start(t, Options{
			Database: database, Poll: 40 * time.Millisecond, Cipher: c, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil }),
		})
	}
	var doc struct {
		Components struct{ Schemas rules }
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	w.rules = doc.Components.Schemas
	do := func(s *Service, method, path, body string) {
		t.Helper()
		if status, v := call(t, s, method, path, body); status >= 300 {
			t.Fatalf("%s %s: %d %v", method, path, status, v)
		}
	}
	s, stop := w.under(w.known)
	do(s, "PUT", "/v1/applications/acme", `{}`)
	do(s, "PUT", "/v1/endpoints/readable", plain)
	do(s, "PUT", "/v1/endpoints/mine", `{"url":"https://example.com/","application":"acme"}`)
	do(s, "POST", "/v1/messages", `{"id":"m1","endpoint":"readable","type":"a","payload":"planted"}`)
	waitLetters(t, s, 1)
	stop()
	s, stop = w.under(w.missing, w.known) // alone: another might put off what it cannot read
	do(s, "POST", "/v1/messages", `{"id":"m2","endpoint":"readable","type":"order.x","payload":"planted"}`)
	do(s, "POST", "/v1/messages", `{"id":"m3","endpoint":"readable","type":"order.x","payload":"planted","not_before":"2099-01-01T00:00:00Z"}`)
	for _, l := range waitLetters(t, s, 2) {
		if l.EventID == "m2" {
			w.letter = l.ID
		}
	}
	stop()
	w.Service, _ = w.under(w.known)
	s, stop = w.under(w.missing, w.known)
	do(s, "PUT", "/v1/applications/acme", `{"name":"planted"}`)
	do(s, "PUT", "/v1/applications/sealed", `{"name":"planted"}`)
	do(s, "PUT", "/v1/endpoints/alone", `{"url":"https://planted.example.com/"}`)
	do(s, "PUT", "/v1/endpoints/mine", `{"url":"https://planted.example.com/","application":"acme"}`)
	do(s, "PUT", "/v1/endpoints/of", `{"url":"https://planted.example.com/","application":"sealed"}`)
	stop()
	waitFor(t, "the changes", func() bool { return len(log.lines("stored endpoint cannot be used")) == 3 })
	return w
}

// get makes a request, and holds what is responded to the document.
func (w *sealedWorld) get(t *testing.T, path, schema string) map[string]any {
	t.Helper()
	status, v := call(t, w.Service, "GET", path, "")
	if status != 200 {
		t.Fatalf("%s: %d %v", path, status, v)
	}
	for _, fault := range w.rules.faults(w.rules[schema], "the body", v) {
		t.Errorf("%s: %s: %v", path, fault, v)
	}
	if strings.Contains(fmt.Sprint(v), "planted") {
		t.Errorf("%s has what cannot be read: %v", path, v)
	}
	return v
}

// entries returns the value of a field in a list by the entries' names.
func entries(list any, name, field string) map[string]string {
	got := map[string]string{}
	for _, v := range list.([]any) {
		v := v.(map[string]any)
		text, _ := v[field].(string)
		got[fmt.Sprint(v[name])] = text
	}
	return got
}

// wantMissing holds a list to who in it cannot be read.
func wantMissing(t *testing.T, what string, got map[string]string, unreadable map[string]bool) {
	t.Helper()
	if len(got) != len(unreadable) {
		t.Errorf("%s are %v", what, got)
	}
	for name, missing := range unreadable {
		why, there := got[name]
		if !there || (why != "") != missing || missing && !strings.Contains(why, `key "ne1ne1e1"`) {
			t.Errorf("%s: %s is there %v, unreadable since %q", what, name, there, why)
		}
	}
}

// What no key of a process opens is in its lists all the same, with the key that is missing.
func TestWhatNoKeyOpensIsListed(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		w := newSealedWorld(t, database)
		wantMissing(t, "applications", entries(w.get(t, "/v1/applications", "Applications")["applications"], "id", "error"), map[string]bool{"acme": true, "sealed": true})
		all := map[string]bool{"readable": false, "alone": true, "mine": true, "of": true}
		list := w.get(t, "/v1/endpoints", "Endpoints")["endpoints"]
		wantMissing(t, "endpoints", entries(list, "id", "error"), all)
		if states := entries(list, "id", "state"); states["alone"] != "enabled" || entries(list, "id", "application")["of"] != "sealed" {
			t.Errorf("the endpoints are %v", list)
		}
		if page := w.get(t, "/v1/endpoints?limit=1&after=mine", "Endpoints"); page["next"] != "of" {
			t.Errorf("a page of them is %v", page)
		}
		wantMissing(t, "endpoints of sealed", entries(w.get(t, "/v1/endpoints?application=sealed", "Endpoints")["endpoints"], "id", "error"), map[string]bool{"of": true})
		wantMissing(t, "statistics", entries(w.get(t, "/v1/stats", "StatsList")["endpoints"], "endpoint", "error"), all)
		for id, missing := range all {
			one := w.get(t, "/v1/endpoints/"+id, "Endpoint")
			wantMissing(t, "one endpoint", entries([]any{one}, "id", "error"), map[string]bool{id: missing})
			if missing && (one["unsigned"] != nil || one["url"] != "") {
				t.Errorf("of one that cannot be read it says %v", one)
			}
			w.get(t, "/v1/endpoints/"+id+"/stats", "EndpointStats")
		}
		if held := w.get(t, "/v1/endpoints/alone/stats", "EndpointStats")["process"].(map[string]any); held["hold"] != "unreadable" {
			t.Errorf("the process says %v", held)
		}
		w.get(t, "/v1/applications/sealed", "Application")

		messages := w.get(t, "/v1/messages", "MessageList")
		wantMissing(t, "messages", entries(messages["messages"], "id", "error"), map[string]bool{"m1": false, "m2": true, "m3": true})
		if v := w.get(t, "/v1/messages?type=a", "MessageList"); len(v["messages"].([]any)) != 1 || v["unreadable"] != 2. {
			t.Errorf("by their type they are %v", v)
		}
		status, v := call(t, w.Service, "POST", "/v1/messages/cancel", `{"filter":{"type":"a"}}`)
		if status != 200 || v["done"] != 0. || v["unreadable"] != 1. { // m3, which waits
			t.Errorf("canceled by their type: %d %v", status, v)
		}
		content := w.get(t, "/v1/messages/m3", "Message")["contents"].([]any)[0].(map[string]any)
		content["id"] = "m3"
		wantMissing(t, "contents", entries([]any{content}, "id", "unreadable"), map[string]bool{"m3": true})

		letters := w.get(t, "/v1/dead-letters", "Letters")["dead_letters"]
		wantMissing(t, "dead letters", entries(letters, "event_id", "unreadable"), map[string]bool{"m1": false, "m2": true})
		wantMissing(t, "one letter", entries([]any{w.get(t, "/v1/dead-letters/"+w.letter+"?reveal=true", "Letter")}, "event_id", "unreadable"), map[string]bool{"m2": true})
		if _, v := call(t, w.Service, "GET", "/v1/dead-letters/export", ""); strings.Count(fmt.Sprint(v["text"]), "ne1ne1e1") != 1 {
			t.Errorf("the export is %v", v)
		}
	})
}

// A configuration that cannot be read is replaced by no one who has not seen it; its
// endpoint is enabled, disabled and deleted as any other.
func TestWhatNoKeyOpensIsNotChanged(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		w := newSealedWorld(t, database)
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "/v1/endpoints/alone", plain},
			{"PUT", "/v1/endpoints/alone", `{"url":"https://example.com/","secrets":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}`},
			{"PATCH", "/v1/endpoints/mine", `{"rate":5}`},
			{"PUT", "/v1/endpoints/new", `{"url":"https://example.com/","application":"sealed"}`},
			{"POST", "/v1/endpoints/alone/secrets/rotate", ``},
			{"POST", "/v1/endpoints/mine/test", ``},
			{"POST", "/v1/endpoints/mine/test-and-enable", ``},
			{"PUT", "/v1/applications/sealed", `{}`},
			{"PATCH", "/v1/applications/sealed", `{"rate":5}`},
			{"POST", "/v1/applications/sealed/secrets/rotate", ``},
			{"POST", "/v1/messages", `{"endpoint":"alone","payload":1}`},
		} {
			status, v := call(t, w.Service, c.method, c.path, c.body)
			if status != 503 || !strings.HasSuffix(fmt.Sprint(v["type"]), "unreadable") || !strings.Contains(fmt.Sprint(v["detail"]), `key "ne1ne1e1"`) {
				t.Errorf("%s %s %s: %d %v", c.method, c.path, c.body, status, v)
			}
		}
		if status, v := call(t, w.Service, "PUT", "/v1/endpoints/alone", `{"url":"https://example.com/","unsigned":true}`, "If-None-Match", "*"); status != 412 {
			t.Errorf("as a new one: %d %v", status, v)
		}
		for _, c := range []struct {
			method, path string
			status       int
			header       []string
		}{
			{"POST", "/v1/endpoints/alone/disable", 200, nil},
			{"POST", "/v1/endpoints/alone/enable", 200, nil},
			{"DELETE", "/v1/endpoints/alone", 412, []string{"If-Match", `"7"`}},
			{"DELETE", "/v1/endpoints/alone", 204, []string{"If-Match", `"1"`}},
			{"DELETE", "/v1/endpoints/of", 204, nil},
			{"DELETE", "/v1/applications/sealed", 204, nil},
		} {
			if status, v := call(t, w.Service, c.method, c.path, "", c.header...); status != c.status {
				t.Errorf("%s %s: %d %v", c.method, c.path, status, v)
			}
		}
		rotated, _ := w.under(w.missing, w.known)
		if _, v := call(t, rotated, "GET", "/v1/endpoints/mine", ""); v["url"] != "https://planted.example.com/" || v["version"] != 2. {
			t.Errorf("with the key it is %v", v)
		}
	})
}

// What no key of a process opens is neither redriven nor exported without its payload, and
// holds up no other. It is erased without being read.
func TestWhatNoKeyOpensIsErased(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		w := newSealedWorld(t, database)
		status, job := call(t, w.Service, "POST", "/v1/redrives", `{"all":true,"rate":100}`)
		if status != 202 {
			t.Fatalf("%d %v", status, job)
		}
		waitFor(t, "the redrive", func() bool {
			_, job = call(t, w.Service, "GET", "/v1/redrives/"+fmt.Sprint(job["id"]), "")
			return job["state"] != "running"
		})
		if job["state"] != "done" || job["begun"] != 1. || !strings.Contains(fmt.Sprint(job["why"]), `1 were not redriven`) || !strings.Contains(fmt.Sprint(job["why"]), "ne1ne1e1") {
			t.Errorf("the redrive is %v", job)
		}
		kept := queue.Retention{Store: w.DB.DeadLetters(), Age: time.Nanosecond, Dir: t.TempDir()}
		if n, err := kept.Once(t.Context()); n != 1 || err == nil || !strings.Contains(err.Error(), "ne1ne1e1") {
			t.Errorf("%d letters are exported, %v", n, err)
		}
		if list := waitLetters(t, w.Service, 1); len(list) != 1 || list[0].ID != w.letter || list[0].Redrives != 0 {
			t.Errorf("left are %+v", list)
		}

		for _, id := range []string{"m2", "m3"} {
			if status, v := call(t, w.Service, "DELETE", "/v1/messages/"+id, ""); status != 204 {
				t.Errorf("%s: %d %v", id, status, v)
			}
		}
		rotated, _ := w.under(w.missing, w.known)
		for _, s := range []*Service{w.Service, rotated} {
			for id, state := range map[string]string{"m2": "dead", "m3": "canceled"} {
				_, v := call(t, s, "GET", "/v1/messages/"+id+"?reveal=true", "")
				content, delivery := v["contents"].([]any)[0].(map[string]any), v["deliveries"].([]any)[0].(map[string]any)
				if content["erased"] != true || content["unreadable"] != nil || content["created_at"] == nil || delivery["state"] != state {
					t.Errorf("%s is %v", id, v)
				}
			}
			if _, v := call(t, s, "GET", "/v1/dead-letters/"+w.letter, ""); v["unreadable"] != nil || v["state"] != "discarded" || v["reason"] == nil {
				t.Errorf("the letter is %v", v)
			}
		}
		if status, v := call(t, rotated, "POST", "/v1/messages", `{"id":"m3","endpoint":"readable","type":"order.x","payload":"planted"}`); status != 409 {
			t.Errorf("sent again under its id: %d %v", status, v)
		}
	})
}
