package durable

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// Endpoints are found by their state, and by a part of an id or a URL, also where what is
// stored of them is encrypted or has escapes in its JSON.
func TestEndpointsAreFound(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		for _, sealed := range []bool{false, true} {
			o := Options{Database: database}
			if sealed {
				var err error
				if o.Cipher, err = sqlstore.NewCipher(sqlstore.NewKey("k")); err != nil {
					t.Fatal(err)
				}
			}
			s, stop := start(t, o)
			prefix := map[bool]string{true: "Sealed", false: "plain"}[sealed]
			put(t, s, webhook.Endpoint{ID: prefix + "-a", URL: "https://example.com/" + prefix + "?x=1&Y=2"})
			put(t, s, webhook.Endpoint{ID: prefix + "-b", URL: "https://example.com/other"})
			call(t, s, "POST", "/v1/endpoints/"+prefix+"-b/disable", `{"reason":"moved"}`)
			for query, want := range map[string]string{
				"state=disabled&q=" + prefix: "[" + prefix + "-b]", "state=enabled&q=" + prefix: "[" + prefix + "-a]",
				"q=" + strings.ToUpper(prefix) + "-": "[" + prefix + "-a " + prefix + "-b]", "q=" + prefix + "%3FX%3D1%26y": "[" + prefix + "-a]", "q=nowhere": "[]",
				"q=" + prefix + "&limit=1": "[" + prefix + "-a]", "q=" + prefix + "&limit=1&after=" + prefix + "-a": "[" + prefix + "-b]",
			} {
				for path, id := range map[string]string{"/v1/endpoints?": "id", "/v1/stats?": "endpoint"} {
					status, v := call(t, s, "GET", path+query, "")
					got := []string{}
					for _, e := range v["endpoints"].([]any) {
						got = append(got, e.(map[string]any)[id].(string))
					}
					if status != 200 || fmt.Sprint(got) != want {
						t.Errorf("%s%s: %d %v, want %s", path, query, status, got, want)
					}
					if all := fmt.Sprint(v); strings.Contains(want, prefix+"-a") && !strings.Contains(all, prefix+"?"+deadletter.Masked) || strings.Contains(all, "x=1") {
						t.Errorf("%s%s: a query of a URL is not masked: %v", path, query, v)
					}
				}
			}
			_, v := call(t, s, "GET", "/v1/endpoints/"+prefix+"-b/stats", "")
			if since, err := time.Parse(time.RFC3339, fmt.Sprint(v["since"])); fmt.Sprintf("%v %v %v %v", v["state"], v["disabled_by"], v["reason"], v["next_attempt"]) != "disabled operator moved <nil>" || err != nil || time.Since(since) > time.Minute {
				t.Errorf("its stats are %v", v)
			}
			call(t, s, "POST", "/v1/messages", `{"id":"`+prefix+`","endpoint":"`+prefix+`-b","payload":1,"not_before":"2100-01-01T00:00:00Z"}`)
			if _, v = call(t, s, "GET", "/v1/endpoints/"+prefix+"-b/stats", ""); !strings.HasPrefix(fmt.Sprint(v["next_attempt"]), "2100-01-01T00:00:0") || v["oldest_age"] != "0s" {
				t.Errorf("the next attempt is %v, the oldest %v", v["next_attempt"], v["oldest_age"])
			}
			stop()
		}
	})
}

// Dead letters come oldest or newest first, page by page, and a search ends when its caller
// wants.
func TestOrderAndPatience(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database, Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil })})
		defer stop()
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		for i := range 3 {
			call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"m%d","endpoint":"a","payload":1}`, i))
			waitLetters(t, s, i+1)
		}
		for query, want := range map[string]string{"": "m0 m1 m2", "newest=false&": "m0 m1 m2", "newest=true&": "m2 m1 m0", "newest=true&destination=a&state=dead&": "m2 m1 m0"} {
			var got []string
			for after := "limit=2"; after != ""; {
				status, page := call(t, s, "GET", "/v1/dead-letters?"+query+after, "")
				if status != 200 {
					t.Fatalf("%s: %d %v", query, status, page)
				}
				for _, l := range page["dead_letters"].([]any) {
					got = append(got, l.(map[string]any)["event_id"].(string))
				}
				if after = ""; page["next"] != "" {
					after = "limit=2&after=" + page["next"].(string)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%q: %v, want %s", query, got, want)
			}
		}
		for query, want := range map[string]int{
			"/v1/dead-letters?newest=1": 400, "/v1/messages?patience=60ms": 200, "/v1/messages?patience=1s": 200,
			"/v1/messages?patience=2s": 400, "/v1/messages?patience=1ms": 400, "/v1/messages?patience=x": 400,
		} {
			if status, v := call(t, s, "GET", query, ""); status != want {
				t.Errorf("%s: %d %v, want %d", query, status, v, want)
			}
		}
	})
}
