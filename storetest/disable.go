package storetest

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Of many dispatchers that disable one endpoint at a time, the one whose write changed it
// raises the alert. Whoever else disables or has disabled it raises none.
func testDisabledOnce(t *testing.T, s Store) {
	put := func(id string) {
		t.Helper()
		must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/"}))(t)
	}
	set := func(id string, state webhook.EndpointState, by webhook.Party, reason string) {
		t.Helper()
		check(t, s.SetEndpointState(t.Context(), id, state, by, reason, time.Now()))
	}
	alerts := func(what string, want int) {
		t.Helper()
		n := 0
		for _, a := range must(s.AlertPage(t.Context(), 0, 10))(t) {
			if a.Queue != webhook.Queue || a.Reason != store.AlertDisabled || a.Detail != "endpoint a was disabled: gone 0" {
				t.Errorf("%s: the alert is %+v", what, a)
			}
			n += a.Count
		}
		if n != want {
			t.Errorf("%s: %d alerts, want %d", what, n, want)
		}
	}
	put("a")
	set("a", webhook.Enabled, webhook.ByForbear, "")
	alerts("it fails", 0)
	set("a", webhook.Disabled, webhook.ByForbear, "gone 0")
	since := must(s.Endpoint(t.Context(), "a"))(t)
	set("a", webhook.Disabled, webhook.ByForbear, "gone 1")
	alerts("disabled twice", 1)
	if e := must(s.Endpoint(t.Context(), "a"))(t); e.Reason != "gone 0" || !e.Since.Equal(since.Since) {
		t.Errorf("disabled since %v: %s, want since %v", e.Since, e.Reason, since.Since)
	}
	for _, by := range []webhook.Party{webhook.ByOperator, webhook.ByTenant} {
		put(string(by))
		set(string(by), webhook.Disabled, by, "a pause")
		set(string(by), webhook.Disabled, webhook.ByForbear, "gone")
	}
	alerts("someone else disabled it", 1)
	set("a", webhook.Enabled, webhook.ByOperator, "")
	set("a", webhook.Disabled, webhook.ByForbear, "gone 0")
	alerts("enabled between", 2)

	set("a", webhook.Enabled, webhook.ByOperator, "")
	before := 2
	for range 10 {
		set("a", webhook.Enabled, webhook.ByOperator, "")
		parallel(8, func(int) {
			if err := s.SetEndpointState(t.Context(), "a", webhook.Disabled, webhook.ByForbear, "gone 0", time.Now()); err != nil {
				t.Error(err)
			}
		})
		before++
		alerts("disabled by eight at a time", before)
	}
	wantErr(t, "none", s.SetEndpointState(t.Context(), "none", webhook.Disabled, webhook.ByForbear, "gone", time.Now()), webhook.ErrNotFound)
	alerts("there is none", before)
}
