package dispatch

import (
	"cmp"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// TestStatuses holds a delivery to Standard Webhooks' table, "Delivery success and
// failure": 2xx is a success, a redirect is not followed, 410 disables the endpoint, and
// all others are failures. Of the failures R-4 sends six again; the others, such as 400
// and 404, are dead letters after one attempt, where Standard Webhooks leaves that open.
func TestStatuses(t *testing.T) {
	again := []int{408, 429, 500, 502, 503, 504}
	for code := 200; code < 600; code++ {
		want, why := store.Dead, reason.Terminal
		switch {
		case code < 300:
			want, why = store.Delivered, reason.None
		case slices.Contains(again, code):
			want, why = store.Retried, reason.None
		case code == http.StatusUnauthorized:
			why = reason.Unauthorized
		}
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, status(code), webhook.Endpoint{})
			o := r.process(r.job())
			if o.Kind != want || want == store.Dead && o.Why != why || o.Attempt == nil || o.Attempt.Status != code {
				t.Errorf("%d: got %v, %v, want %v, %v", code, o.Kind, o.Why, want, cmp.Or(why, reason.None))
			}
			if r.to.enabled() == (code == http.StatusGone) {
				t.Errorf("%d: the endpoint is enabled: %v", code, r.to.enabled())
			}
		})
	}
}
