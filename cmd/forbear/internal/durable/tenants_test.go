package durable

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// Two tenants whose messages have died: each sees, filters and redrives its own by every
// route, and finds nothing of the other's; the operator chooses by application.
func TestTenantsRedriveTheirOwn(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		sent := &arrivals{}
		var takes sync.Map // the paths of receivers that are mended
		s, _ := start(t, Options{Database: name, Token: "the operator's own token", Poll: 20 * time.Millisecond, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if _, ok := takes.Load(r.URL.Path); ok {
				return sent.RoundTrip(r)
			}
			return answer(400), nil
		})})
		root := "Bearer the operator's own token"
		do := func(want int, auth, method, path, body string) map[string]any {
			t.Helper()
			status, v := call(t, s, method, path, body, "Authorization", auth)
			if status != want {
				t.Errorf("%s %s %s: %d %v, want %d", method, path, body, status, v, want)
			}
			return v
		}
		tokens, boards := map[string]string{}, map[string]string{}
		for _, app := range []string{"acme", "other"} {
			do(200, root, "PUT", "/v1/applications/"+app, `{}`)
			do(200, root, "PUT", "/v1/endpoints/"+app+"-e", `{"url":"https://example.com/`+app+`","application":"`+app+`"}`)
			tokens[app] = token(t, s, `{"name":"`+app+`","scope":"application","application":"`+app+`"}`, "Authorization", root)
			boards[app] = token(t, s, `{"name":"`+app+`-board","scope":"read-only","application":"`+app+`"}`, "Authorization", root)
			do(202, tokens[app], "POST", "/v1/messages", `{"id":"m-`+app+`","payload":"of `+app+`"}`)
		}
		letters := map[string]string{}
		for _, l := range waitLetters(t, s, 2) {
			letters[l.Application] = l.ID
		}
		ids := func(v map[string]any, list string) (ids []string) {
			for _, i := range v[list].([]any) {
				ids = append(ids, i.(map[string]any)["id"].(string))
			}
			slices.Sort(ids)
			return ids
		}
		jobs, arrived := map[string]string{}, []string(nil)
		for app, other := range map[string]string{"acme": "other", "other": "acme"} {
			mine, theirs := letters[app], letters[other]
			for _, auth := range []string{tokens[app], boards[app]} {
				for _, query := range []string{"", "?application=" + app, "?state=dead&limit=5"} {
					if got := ids(do(200, auth, "GET", "/v1/dead-letters"+query, ""), "dead_letters"); !slices.Equal(got, []string{mine}) {
						t.Errorf("%s sees the letters %v by %q, want %s", app, got, query, mine)
					}
				}
				if got := ids(do(200, auth, "GET", "/v1/messages?application="+app, ""), "messages"); !slices.Equal(got, []string{"m-" + app}) {
					t.Errorf("%s sees the messages %v", app, got)
				}
				if l := do(200, auth, "GET", "/v1/dead-letters/"+mine, ""); l["application"] != app {
					t.Errorf("its letter is %v", l)
				}
				none, foreign := do(404, auth, "GET", "/v1/dead-letters/none", ""), do(404, auth, "GET", "/v1/dead-letters/"+theirs, "")
				if strings.ReplaceAll(fmt.Sprint(foreign["detail"]), theirs, "none") != none["detail"] {
					t.Errorf("another's letter is told from one that there is not: %v", foreign["detail"])
				}
				do(200, auth, "GET", "/v1/dead-letters?after="+mine, "")
				do(400, auth, "GET", "/v1/dead-letters?after="+theirs, "")
				do(403, auth, "GET", "/v1/dead-letters?application="+other, "")
				do(403, auth, "GET", "/v1/messages?application="+other, "")
				do(403, auth, "GET", "/v1/redrives?application="+other, "")
				for _, route := range []string{"GET /v1/dead-letters/stats", "GET /v1/dead-letters/export", "POST /v1/dead-letters/discard", "POST /v1/dead-letters/" + mine + "/discard", "GET /v1/audit", "GET /v1/alerts"} {
					method, path, _ := strings.Cut(route, " ")
					do(403, auth, method, path, `{"filter":{"queue":"webhooks"},"reason":"x"}`)
				}
			}
			if v := do(200, tokens[app], "GET", "/v1/dead-letters/"+mine+"?reveal=true", ""); v["payload"] == nil {
				t.Errorf("its own payload is not revealed: %v", v)
			}
			do(403, boards[app], "POST", "/v1/redrives", `{"all":true}`)
			do(403, tokens[app], "POST", "/v1/redrives", `{"filter":{"application":"`+other+`"}}`)
			do(403, tokens[app], "POST", "/v1/redrives", `{"all":true,"max_redrives":100}`)
			do(400, tokens[app], "POST", "/v1/redrives", `{}`)
			for _, filter := range []string{`"ids":["` + theirs + `"]`, `"destination":"` + other + `-e"`, `"event_id":"m-` + other + `"`, `"queue":"alerts"`} {
				if v := do(200, tokens[app], "POST", "/v1/redrives", `{"dry_run":true,"filter":{`+filter+`}}`); fmt.Sprint(v["count"]) != "0" {
					t.Errorf("%s chooses %v of another's by %s", app, v["count"], filter)
				}
			}
			if v := do(200, tokens[app], "POST", "/v1/redrives", `{"dry_run":true,"all":true}`); fmt.Sprint(v["count"]) != "1" {
				t.Errorf("%s chooses %v of all, want its own", app, v["count"])
			}
			takes.Store("/"+app, true)
			job := do(202, tokens[app], "POST", "/v1/redrives", `{"all":true}`)
			jobs[app] = job["id"].(string)
			if job["filter"].(map[string]any)["application"] != app {
				t.Errorf("its redrive is %v", job)
			}
			arrived = append(arrived, "m-"+app+" at /"+app)
			sent.wait(t, arrived...)
		}
		for app, other := range map[string]string{"acme": "other", "other": "acme"} {
			for _, auth := range []string{tokens[app], boards[app]} {
				if got := ids(do(200, auth, "GET", "/v1/redrives", ""), "redrives"); !slices.Equal(got, []string{jobs[app]}) {
					t.Errorf("%s sees the redrives %v", app, got)
				}
				do(200, auth, "GET", "/v1/redrives/"+jobs[app], "")
				do(404, auth, "GET", "/v1/redrives/"+jobs[other], "")
			}
			for _, what := range []string{"pause", "resume", "cancel"} {
				do(404, tokens[app], "POST", "/v1/redrives/"+jobs[other]+"/"+what, "")
				do(403, boards[app], "POST", "/v1/redrives/"+jobs[app]+"/"+what, "")
			}
			if got := ids(do(200, root, "GET", "/v1/redrives?application="+app, ""), "redrives"); !slices.Equal(got, []string{jobs[app]}) {
				t.Errorf("of %s the operator sees the redrives %v", app, got)
			}
			if got := ids(do(200, root, "GET", "/v1/dead-letters?application="+app, ""), "dead_letters"); !slices.Equal(got, []string{letters[app]}) {
				t.Errorf("of %s the operator sees the letters %v", app, got)
			}
			if v := do(200, root, "GET", "/v1/messages?application="+app, ""); !slices.Equal(ids(v, "messages"), []string{"m-" + app}) || v["messages"].([]any)[0].(map[string]any)["application"] != app {
				t.Errorf("of %s the operator sees the messages %v", app, v)
			}
		}
		waitState(t, s, string(deadletter.Resolved))
		if got := ids(do(200, root, "GET", "/v1/redrives", ""), "redrives"); len(got) != 2 {
			t.Errorf("the operator sees %v", got)
		}
	})
}
