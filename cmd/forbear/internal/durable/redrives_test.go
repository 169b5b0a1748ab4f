package durable

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// Redrives are listed page by page, and a tenant that makes many of nothing neither makes
// work for the dispatcher nor hides the others'.
func TestRedrivesInPages(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		s, _ := start(t, Options{Database: name, Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
		root := "Bearer the operator's own token"
		tokens := map[string]string{}
		for _, app := range []string{"acme", "other"} {
			call(t, s, "PUT", "/v1/applications/"+app, `{"rate":2.5}`, "Authorization", root)
			tokens[app] = token(t, s, `{"name":"`+app+`","scope":"application","application":"`+app+`"}`, "Authorization", root)
		}
		var made []string // the newest first
		redrive := func(auth, body string) {
			t.Helper()
			status, v := call(t, s, "POST", "/v1/redrives", body, "Authorization", auth)
			if status != 202 || v["state"] != string(queue.JobDone) || fmt.Sprint(v["total"]) != "0" {
				t.Fatalf("%d %v, want one that is done", status, v)
			}
			if want := map[bool]float64{true: 10, false: 2.5}[auth == root]; v["rate"] != want {
				t.Errorf("its rate is %v, want %v", v["rate"], want)
			}
			made = slices.Insert(made, 0, v["id"].(string))
		}
		redrive(root, `{"all":true}`)
		redrive(tokens["other"], `{"all":true}`)
		for range 5 {
			redrive(tokens["acme"], `{"filter":{"ids":["none"]},"rate":400}`)
		}
		if _, ok, err := s.DB.DeadLetters().ClaimJob(t.Context(), "a test", 0); ok || err != nil {
			t.Errorf("a redrive of nothing waits for a process: %v", err)
		}
		pages := func(auth, query string) (ids []string) {
			t.Helper()
			for after, n := "", 0; n < 20; n++ {
				status, v := call(t, s, "GET", "/v1/redrives?limit=2"+query+after, "", "Authorization", auth)
				if status != 200 || len(v["redrives"].([]any)) > 2 {
					t.Fatalf("%d %v", status, v)
				}
				for _, j := range v["redrives"].([]any) {
					ids = append(ids, j.(map[string]any)["id"].(string))
				}
				if v["next"] == "" {
					return ids
				}
				after = "&after=" + v["next"].(string)
			}
			t.Fatal("the pages have no end")
			return nil
		}
		for _, c := range []struct {
			auth, query string
			want        []string
		}{
			{root, "", made},
			{root, "&application=other", made[5:6]},
			{root, "&application=acme", made[:5]},
			{tokens["acme"], "", made[:5]},
			{tokens["other"], "", made[5:6]},
		} {
			if got := pages(c.auth, c.query); !slices.Equal(got, c.want) {
				t.Errorf("%q has %v, want %v", c.query, got, c.want)
			}
		}
		for auth, after := range map[string]string{root: "none", tokens["acme"]: made[5]} {
			if status, v := call(t, s, "GET", "/v1/redrives?after="+after, "", "Authorization", auth); status != 400 {
				t.Errorf("behind one that is not there: %d %v", status, v)
			}
		}
	})
}
