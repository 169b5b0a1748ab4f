package published

import (
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// retryAfter is RFC 9110: the examples of sections 10.2.3 and 5.6.7, by whose three forms
// of a date a client has to read each. A date counts from the response's Date.
func retryAfter(t *testing.T) *tally {
	const stop = -1
	var c tally
	for _, tc := range []struct {
		name  string
		kind  forbear.Kind
		lines []string
		want  time.Duration
	}{
		{"120 seconds are too long for a call of 30", forbear.Sync, []string{"Retry-After: 120"}, stop},
		{"120 seconds of a webhook", forbear.Webhook, []string{"Retry-After: 120"}, 120 * time.Second},
		{"a date", forbear.Sync, []string{"Date: Fri, 31 Dec 1999 23:59:49 GMT", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT"}, 10 * time.Second},
		{"a date gone by", forbear.Sync, []string{"Date: Sat, 01 Jan 2000 00:00:01 GMT", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT"}, 0},
		{"the preferred form", forbear.Sync, []string{"Date: Sun, 06 Nov 1994 08:49:27 GMT", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"}, 10 * time.Second},
		{"the form of RFC 850", forbear.Sync, []string{"Date: Sun, 06 Nov 1994 08:49:27 GMT", "Retry-After: Sunday, 06-Nov-94 08:49:37 GMT"}, 10 * time.Second},
		{"the form of asctime", forbear.Sync, []string{"Date: Sun, 06 Nov 1994 08:49:27 GMT", "Retry-After: Sun Nov  6 08:49:37 1994"}, 10 * time.Second},
		{"two digits, more than 50 years ahead", forbear.Sync, []string{"Retry-After: Friday, 01-Jan-51 00:00:00 GMT"}, 0},
	} {
		unwell := response{http.StatusServiceUnavailable, tc.lines}
		got := get(t, forbear.Policy{Kind: tc.kind}, 0, unwell, response{status: http.StatusOK})
		agrees := got.waited(http.StatusOK, tc.want)
		if tc.want == stop {
			agrees = got.waited(http.StatusServiceUnavailable)
		}
		c.add(t, tc.name, agrees, "", got)
	}
	return &c
}
