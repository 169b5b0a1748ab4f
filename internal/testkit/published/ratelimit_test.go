package published

import (
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// rateLimit is draft-ietf-httpapi-ratelimit-headers-10: its examples as they are, then the
// fields of its other examples on a 429, lists, and malformed fields. What is used up (r=0)
// is to be left alone until t has passed. What is not, and what is malformed, says nothing.
func rateLimit(t *testing.T) *tally {
	const stop, final = -1, -2 // too long for the call; not retried at all
	var c tally
	for _, tc := range []struct {
		name   string
		status int
		lines  []string
		want   time.Duration
		rule   string
	}{
		{"a redirect", 301, []string{"Location: /foo/123", `RateLimit: "problemPolicy";r=0;t=10`}, final, ""},
		{"a success with nothing left", 200, []string{`RateLimit: "default";r=0;t=50`}, final, ""},
		{"refused, with a date that says the same", 429, []string{
			"Date: Mon, 05 Aug 2019 09:27:00 GMT", "Retry-After: Mon, 05 Aug 2019 09:27:05 GMT", `RateLimit: "default";r=0;t=5`,
		}, 5 * time.Second, ""},
		{"refused by a lower limit", 429, []string{`RateLimit-Policy: "dynamic";q=15;w=20`, `RateLimit: "dynamic";r=0;t=20`}, 20 * time.Second, ""},
		{"refused with quota left", 429, []string{
			"Retry-After: 20", `RateLimit-Policy: "dynamic";q=100;w=60`, `RateLimit: "dynamic";r=15;t=40`,
		}, 20 * time.Second, ""},

		{"50 left", 429, []string{`RateLimit: "default";r=50;t=30`}, 0, ""},
		{"999 left, no time", 429, []string{`RateLimit: "default";r=999;pk=:dHJpYWwxMjEzMjM=:`}, 0, ""},
		{"300 MB left", 429, []string{`RateLimit: "default";r=300000000;t=60;pk=:QXBwLTk5OQ==:`}, 0, ""},
		{"one left for ten hours", 429, []string{"Date: Tue, 15 Nov 1994 18:00:00 GMT", `RateLimit: "daily";r=1;t=36400`}, 0, ""},
		{"a time beyond the call", 429, []string{`RateLimit: "default";r=0;t=50`}, stop, ""},
		{"comments of a service", 429, []string{
			`RateLimit-Policy: "sliding";q=100;w=60;burst=1000`, `RateLimit-Policy: "fixed";q=5000;w=3600;burst=0`, `RateLimit: "sliding";r=50;t=44`,
		}, 0, ""},
		{"no r", 429, []string{"RateLimit-Policy: quota;q=100;w=1", "RateLimit: quota;t=1"}, 0, "field without `r`"},
		{"a policy alone", 429, []string{`RateLimit-Policy: "hour";q=1000;w=3600, "day";q=5000;w=86400`}, 0, ""},

		{"a list, one used up", 429, []string{`RateLimit: "hour";r=0;t=4, "day";r=100;t=36000`}, 4 * time.Second, ""},
		{"a list in two fields", 429, []string{`RateLimit: "hour";r=0;t=4`, `RateLimit: "day";r=100;t=36000`}, 4 * time.Second, ""},
		{"both used up", 429, []string{`RateLimit: "burst";r=0;t=2, "minute";r=0;t=9`}, 9 * time.Second, ""},
		{"Retry-After goes first", 429, []string{`RateLimit: "default";r=0;t=20`, "Retry-After: 3"}, 3 * time.Second, ""},

		{"a negative time", 429, []string{`RateLimit: "default";r=0;t=-5`}, 0, ""},
		{"a fraction", 429, []string{`RateLimit: "default";r=0;t=5.5`}, 0, ""},
		{"a word", 429, []string{`RateLimit: "default";r=0;t=soon`}, 0, ""},
		{"a text as r", 429, []string{`RateLimit: "default";r="0";t=5`}, 0, ""},
	} {
		got := get(t, forbear.Policy{}, 0, response{tc.status, tc.lines}, response{status: http.StatusOK})
		agrees := got.waited(http.StatusOK, tc.want)
		if tc.want < 0 {
			agrees = got.waited(tc.status)
		}
		c.add(t, tc.name, agrees, tc.rule, got)
		if tc.rule != "" && !got.waited(http.StatusOK, time.Second) {
			t.Errorf("%s: got %+v, want a wait of 1 s", tc.name, got)
		}
	}
	return &c
}
