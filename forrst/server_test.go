package forrst_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/forrst"
)

func TestWriteError(t *testing.T) {
	seconds := func(n int64) *forrst.Duration { return &forrst.Duration{Value: n, Unit: "second"} }
	details := func(s string) json.RawMessage { return json.RawMessage(`{"retry_after":` + s + `}`) }
	for _, tc := range []struct {
		name       string
		guide      *forrst.Retry
		errs       []forrst.Error
		status     int
		retryAfter string
		data       string
	}{
		{"the default", nil, []forrst.Error{{Code: "RATE_LIMITED"}}, 429, "60", `{"allowed":true,"strategy":"fixed","after":{"value":1,"unit":"minute"}}`},
		{"what the details know", nil, []forrst.Error{{Code: "RATE_LIMITED", Details: details(`{"value":1500,"unit":"millisecond"}`)}}, 429, "2", `{"allowed":true,"strategy":"fixed","after":{"value":1500,"unit":"millisecond"}}`},
		{"what the server knows", &forrst.Retry{Allowed: true, Strategy: forrst.Fixed, After: seconds(7), MaxAttempts: 2}, []forrst.Error{{Code: "UNAVAILABLE"}}, 503, "7", `{"allowed":true,"strategy":"fixed","after":{"value":7,"unit":"second"},"max_attempts":2}`},
		{"never less than the details", &forrst.Retry{Allowed: true, After: seconds(1)}, []forrst.Error{{Code: "UNAVAILABLE", Details: details(`{"value":9,"unit":"second"}`)}}, 503, "9", `{"allowed":true,"after":{"value":9,"unit":"second"}}`},
		{"less than a second", &forrst.Retry{Allowed: true, Strategy: forrst.Fixed, After: &forrst.Duration{Value: 50, Unit: "millisecond"}}, []forrst.Error{{Code: "UNAVAILABLE"}}, 503, "", `{"allowed":true,"strategy":"fixed","after":{"value":50,"unit":"millisecond"}}`},
		{"at once", nil, []forrst.Error{{Code: "DEADLINE_EXCEEDED"}}, 504, "", `{"allowed":true,"strategy":"immediate"}`},
		{"not at all", &forrst.Retry{After: seconds(3), MaxAttempts: 1}, []forrst.Error{{Code: "UNAVAILABLE"}}, 503, "", `{"allowed":false}`},
		{"final", nil, []forrst.Error{{Code: "INVALID_ARGUMENTS"}}, 400, "", `{"allowed":false}`},
		{"unknown", nil, []forrst.Error{{Code: "ORDERS_EMPTY"}}, 400, "", `{"allowed":false}`},
		{"two, the longer waits", nil, []forrst.Error{{Code: "UNAVAILABLE"}, {Code: "DEPENDENCY_ERROR"}}, 400, "2", `{"allowed":true,"strategy":"exponential","after":{"value":2,"unit":"second"}}`},
		{"two, one final", nil, []forrst.Error{{Code: "UNAVAILABLE"}, {Code: "FORBIDDEN"}}, 400, "", `{"allowed":false}`},
		{"none", nil, nil, 500, "1", `{"allowed":true,"strategy":"exponential","after":{"value":1,"unit":"second"},"max_attempts":3}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			if err := forrst.WriteError(w, "req_1", tc.guide, tc.errs...); err != nil {
				t.Fatal(err)
			}
			resp, err := forrst.ParseResponse(w.Body.Bytes())
			if err != nil || *resp.ID != "req_1" || len(resp.Extensions) != 1 || resp.Extensions[0].URN != forrst.URN {
				t.Fatalf("%s: %v", w.Body, err)
			}
			if got := string(resp.Extensions[0].Data); got != tc.data {
				t.Errorf("data %s, want %s", got, tc.data)
			}
			if w.Code != tc.status || w.Header().Get("Retry-After") != tc.retryAfter {
				t.Errorf("%d, Retry-After %q; want %d, %q", w.Code, w.Header().Get("Retry-After"), tc.status, tc.retryAfter)
			}
			if strings.Contains(w.Body.String(), "retryable") {
				t.Errorf("the boolean is back: %s", w.Body)
			}
		})
	}
}

// TestRelayedErrorLosesTheBoolean: an error that was read from an older server
// is written without it.
func TestRelayedErrorLosesTheBoolean(t *testing.T) {
	old, err := forrst.ParseResponse([]byte(`{"protocol":{"name":"forrst"},"id":"r","result":null,"errors":[{"code":"X","message":"m","retryable":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(forrst.Refuse("r", nil, old.Errors...))
	if err != nil || strings.Contains(string(text), "retryable") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDurations(t *testing.T) {
	for _, tc := range []struct {
		d    time.Duration
		want forrst.Duration
	}{
		{0, forrst.Duration{Value: 0, Unit: "second"}},
		{-1, forrst.Duration{Value: 0, Unit: "second"}},
		{1, forrst.Duration{Value: 1, Unit: "millisecond"}},
		{90 * time.Second, forrst.Duration{Value: 90, Unit: "second"}},
		{48 * time.Hour, forrst.Duration{Value: 2, Unit: "day"}},
	} {
		if got := forrst.DurationOf(tc.d); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.d, got, tc.want)
		}
	}
	for _, d := range []forrst.Duration{{Value: -1, Unit: "second"}, {Value: 1, Unit: "seconds"}, {Value: 1}} {
		if _, ok := d.Wait(); ok {
			t.Errorf("%+v was read", d)
		}
	}
}
