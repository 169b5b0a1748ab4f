package published

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// awsStandard is AWS's "Retry Behavior 2.0", standard mode, as smithy-swift's
// RetryIntegrationTests has it: each random number is 1. Cases 3, 4, 7 and 8 are about its
// quota of tokens; forbear's budget is another one, with a floor that is enough here, as
// their 500 tokens are.
func awsStandard(t *testing.T) *tally {
	const second = time.Second
	ok, e500, e502 := response{status: http.StatusOK}, response{status: http.StatusInternalServerError}, response{status: http.StatusBadGateway}
	var c tally
	for _, tc := range []struct {
		name      string
		retries   int
		cap       time.Duration
		responses []response
		status    int
		waits     []time.Duration
	}{
		{"1, success at the third", 2, 20 * second, []response{e500, e500, ok}, 200, []time.Duration{second, 2 * second}},
		{"2, three attempts at most", 2, 20 * second, []response{e502}, 502, []time.Duration{second, 2 * second}},
		{"5, waits that double", 4, 20 * second, []response{e500}, 500, []time.Duration{second, 2 * second, 4 * second, 8 * second}},
		{"6, the longest wait", 4, 3 * second, []response{e500}, 500, []time.Duration{second, 2 * second, 3 * second, 3 * second}},
	} {
		policy := forbear.Policy{
			MaxRetries: tc.retries, Backoff: forbear.Backoff{Base: second, Cap: tc.cap}, Budget: budget.Policy{MinRetries: tc.retries},
		}
		got := get(t, policy, math.Nextafter(1, 0), tc.responses...)
		c.add(t, "case "+tc.name, got.waited(tc.status, tc.waits...), "", got)
	}
	return &c
}
