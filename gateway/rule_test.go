package gateway

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/reason"
)

// TestOnlyWhatWasNotSentIsRefused: of every reason, 429 and 503 mean that no attempt was
// made, and that is said to callers of gRPC by the same rule.
func TestOnlyWhatWasNotSentIsRefused(t *testing.T) {
	for r := reason.None + 1; r.String() != "invalid"; r++ {
		for attempts := range 3 {
			e := &forbear.Error{Reason: r, Type: "connection_reset", Attempts: attempts, Until: time.Now().Add(time.Minute)}
			p := newProblem(http.StatusBadGateway, "upstream", "Upstream failed", "")
			p.Outcome = problem.Unknown
			fill(&p, e)
			refused := p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
			if refused && attempts > 0 || !refused && attempts == 0 && r.Momentary() || (p.Outcome == problem.Unsent) != (attempts == 0) {
				t.Errorf("%v after %d attempts: %d, %s", r, attempts, p.Status, p.Outcome)
			}
			if code := codeOf(&p); code == 8 && attempts > 0 {
				t.Errorf("%v after %d attempts: RESOURCE_EXHAUSTED", r, attempts)
			}
			h := http.Header{}
			retryAfter(h, e)
			if seconds, err := strconv.Atoi(h.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
				t.Errorf("%v: Retry-After %q", r, h.Get("Retry-After"))
			}
		}
	}
	far, h := &forbear.Error{Until: time.Now().Add(1<<63-1).AddDate(1, 0, 0)}, http.Header{}
	if retryAfter(h, far); h.Get("Retry-After") != "9223372037" {
		t.Errorf("the farthest time: Retry-After %q", h.Get("Retry-After"))
	}
}
