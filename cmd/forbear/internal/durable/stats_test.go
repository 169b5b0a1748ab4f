package durable

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// What an endpoint has and how its attempts went is in the store: a process that
// made none of them has the same.
func TestStatsAreTheSameEverywhere(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("webhook-id") == "m0" {
				return answer(404), nil
			}
			return answer(200), nil
		})})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/", Ordered: true})
		put(t, s, webhook.Endpoint{ID: "b", URL: "https://example.com/"})
		for i := range 3 {
			call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"m%d","endpoint":"a","payload":1}`, i))
		}
		waitLetters(t, s, 1)
		waitFor(t, "three attempts", func() bool { return s.Dispatcher.Stats().Delivered == 2 })
		call(t, s, "POST", "/v1/endpoints/a/disable", "")
		for i := range 3 {
			call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"w%d","endpoint":"a","key":"k","payload":1}`, i))
		}
		stop() // which reports what was counted

		other, stop := start(t, Options{Database: database})
		defer stop()
		status, v := call(t, other, "GET", "/v1/endpoints/a/stats", "")
		if status != 200 {
			t.Fatalf("got %d %v", status, v)
		}
		if got := fmt.Sprint([]any{v["backlog"], v["waiting"], v["held"], v["sending"], v["dead_letters"], v["state"], v["capped"]}); got != "[3 1 2 0 1 disabled <nil>]" {
			t.Errorf("got %s", got)
		}
		if age, err := time.ParseDuration(v["oldest_age"].(string)); err != nil || age <= 0 || age > time.Minute {
			t.Errorf("the oldest is %v", v["oldest_age"])
		}
		for _, window := range []string{"last_hour", "last_day"} {
			w := v[window].(map[string]any)
			if got := fmt.Sprint(w["delivered"], w["failed"], w["responses"]); got != "2 1 map[2xx:2 4xx:1]" {
				t.Errorf("%s: %s", window, got)
			}
			if p, err := time.ParseDuration(w["p95"].(string)); err != nil || p <= 0 {
				t.Errorf("%s: p95 is %v", window, w["p95"])
			}
		}
		_, list := call(t, other, "GET", "/v1/stats?limit=1", "")
		if e := list["endpoints"].([]any); len(e) != 1 || e[0].(map[string]any)["endpoint"] != "a" || list["next"] != "a" || list["outbox"].(map[string]any)["depth"] != 0.0 {
			t.Errorf("got %v", list)
		}
		_, list = call(t, other, "GET", "/v1/stats?after=a", "")
		if e := list["endpoints"].([]any); len(e) != 1 || e[0].(map[string]any)["backlog"] != 0.0 || list["next"] != "" {
			t.Errorf("got %v", list)
		}
	})
}
