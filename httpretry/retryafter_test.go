package httpretry_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/waitform"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const forever = time.Duration(math.MaxInt64)

// fields makes a header of "Name: value" lines as they come from the wire.
func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, value)
	}
	return h
}

func TestParseRetryAfter(t *testing.T) {
	const ignored = time.Duration(-1)
	for _, tc := range []struct {
		name  string
		lines []string
		want  time.Duration
	}{
		{"nothing", nil, ignored},
		{"seconds", []string{"Retry-After: 120"}, 2 * time.Minute},
		{"zero", []string{"Retry-After: 0"}, 0},
		{"leading zeros", []string{"Retry-After: 00010"}, 10 * time.Second},
		{"optional white space", []string{"Retry-After: \t 7 \t"}, 7 * time.Second},
		{"lower case name", []string{"retry-after: 7"}, 7 * time.Second},
		{"a fraction, in practice", []string{"Retry-After: 1.5"}, 1500 * time.Millisecond},
		{"a fraction is rounded up", []string{"Retry-After: 1.0001"}, 1001 * time.Millisecond},

		{"empty", []string{"Retry-After:"}, ignored},
		{"white space", []string{"Retry-After:  "}, ignored},
		{"negative", []string{"Retry-After: -1"}, ignored},
		{"plus", []string{"Retry-After: +5"}, ignored},
		{"unit", []string{"Retry-After: 120s"}, ignored},
		{"words", []string{"Retry-After: soon"}, ignored},
		{"exponent", []string{"Retry-After: 1e3"}, ignored},
		{"hexadecimal", []string{"Retry-After: 0x10"}, ignored},
		{"separator", []string{"Retry-After: 1_000"}, ignored},
		{"other digits", []string{"Retry-After: ١٢"}, ignored},
		{"no whole part", []string{"Retry-After: .5"}, ignored},
		{"no fraction", []string{"Retry-After: 5."}, ignored},
		{"two points", []string{"Retry-After: 1.2.3"}, ignored},
		{"a list in one line", []string{"Retry-After: 5, 10"}, ignored},
		{"quoted", []string{`Retry-After: "5"`}, ignored},
		{"not a number", []string{"Retry-After: NaN"}, ignored},
		{"infinite", []string{"Retry-After: Infinity"}, ignored},
		{"two lines", []string{"Retry-After: 5", "Retry-After: 10"}, 10 * time.Second},
		{"two lines, the larger first", []string{"Retry-After: 10", "Retry-After: 5"}, 10 * time.Second},
		{"two lines, one unreadable", []string{"Retry-After: later", "Retry-After: 5"}, 5 * time.Second},

		{"the largest that fits", []string{"Retry-After: 9223372036"}, 9223372036 * time.Second},
		{"beyond a Duration", []string{"Retry-After: 9223372037"}, forever},
		{"a fraction beyond a Duration", []string{"Retry-After: 9223372036.9"}, forever},
		{"beyond 64 bits", []string{"Retry-After: 18446744073709551621"}, forever},
		{"beyond everything", []string{"Retry-After: " + strings.Repeat("9", 400)}, forever},

		{"IMF date", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"RFC 850 date", []string{"Retry-After: Friday, 20-Nov-26 12:00:30 GMT"}, 30 * time.Second},
		{"asctime date", []string{"Retry-After: Fri Nov 20 12:00:30 2026"}, 30 * time.Second},
		{"asctime, day padded with a space", []string{"Retry-After: Sun Nov  6 08:49:37 1994"}, 0},
		{"asctime, day of two digits", []string{"Retry-After: Sun Nov 06 08:49:37 1994"}, 0},
		{"gone by", []string{"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"}, 0},
		{"leap second", []string{"Retry-After: Fri, 20 Nov 2026 12:00:60 GMT"}, time.Minute},
		{"wrong day of the week", []string{"Retry-After: Sat, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"year 9999", []string{"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"}, forever},
		{"no such day", []string{"Retry-After: Mon, 31 Nov 2026 12:00:30 GMT"}, ignored},
		{"no such hour", []string{"Retry-After: Fri, 20 Nov 2026 24:00:30 GMT"}, ignored},
		{"no zone", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30"}, ignored},
		{"another zone", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30 CET"}, ignored},
		{"offset", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30 +0000"}, ignored},
		{"ISO date", []string{"Retry-After: 2026-11-20T12:00:30Z"}, ignored},
		{"fraction of a second", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30.5 GMT"}, ignored},
		{"hour of one digit", []string{"Retry-After: Fri, 20 Nov 2026 9:00:30 GMT"}, ignored},
		{"lower case date", []string{"Retry-After: fri, 20 nov 2026 12:00:30 GMT"}, ignored},
		{"lower case zone", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30 gmt"}, ignored},
		{"text behind the date", []string{"Retry-After: Fri, 20 Nov 2026 12:00:30 GMT."}, ignored},

		{"server's clock ahead", []string{"Date: Fri, 20 Nov 2026 12:05:00 GMT", "Retry-After: Fri, 20 Nov 2026 12:05:30 GMT"}, 30 * time.Second},
		{"server's clock behind", []string{"Date: Fri, 20 Nov 2026 11:00:00 GMT", "Retry-After: Fri, 20 Nov 2026 11:00:30 GMT"}, 30 * time.Second},
		{"server's clock unreadable", []string{"Date: yesterday", "Retry-After: Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"seconds need no clock", []string{"Date: Fri, 20 Nov 2026 11:00:00 GMT", "Retry-After: 30"}, 30 * time.Second},

		{"milliseconds", []string{"retry-after-ms: 1500"}, 1500 * time.Millisecond},
		{"milliseconds with a fraction", []string{"retry-after-ms: 1500.2"}, 1501 * time.Millisecond},
		{"negative milliseconds", []string{"retry-after-ms: -3"}, ignored},
		{"milliseconds beyond a Duration", []string{"retry-after-ms: 9223372036855"}, forever},
		{"seconds above milliseconds", []string{"retry-after-ms: 1500", "Retry-After: 2"}, 2 * time.Second},
		{"milliseconds above seconds", []string{"retry-after-ms: 2500", "Retry-After: 2"}, 2500 * time.Millisecond},

		{"RateLimit", []string{`RateLimit: "default";r=0;t=30`}, 30 * time.Second},
		{"RateLimit, two policies", []string{`RateLimit: "burst";r=0;t=2, "day";r=0;t=20`}, 20 * time.Second},
		{"RateLimit, one policy used up", []string{`RateLimit: "burst";r=0;t=2, "day";r=5;t=20`}, 2 * time.Second},
		{"RateLimit with quota left", []string{`RateLimit: "default";r=50;t=30`}, ignored},
		{"RateLimit without a reset", []string{`RateLimit: "default";r=0`}, ignored},
		{"RateLimit, negative", []string{`RateLimit: "default";r=0;t=-30`}, ignored},
		{"RateLimit, malformed", []string{`RateLimit: "default";r=0;t=thirty`}, ignored},
		{"RateLimit, a fraction", []string{`RateLimit: "default";r=0;t=30.5`}, ignored},
		{"RateLimit, white space", []string{`RateLimit: "default" ; r=0 ; t=30`}, 30 * time.Second},
		{"RateLimit of older drafts", []string{`RateLimit: limit=100, remaining=0, reset=30`}, 30 * time.Second},
		{"RateLimit of older drafts with quota left", []string{`RateLimit: limit=100, remaining=1, reset=30`}, ignored},
		{"RateLimit of older drafts, malformed", []string{`RateLimit: limit=100, remaining=0, reset=-30`}, ignored},
		{"RateLimit beyond a Duration", []string{`RateLimit: "default";r=0;t=9223372037`}, forever},
		{"RateLimit below Retry-After", []string{`RateLimit: "default";r=0;t=60`, "Retry-After: 10"}, 10 * time.Second},
		{"RateLimit-Reset", []string{"RateLimit-Reset: 25"}, 25 * time.Second},
		{"RateLimit-Reset with quota left", []string{"RateLimit-Reset: 25", "RateLimit-Remaining: 57"}, ignored},
		{"RateLimit-Reset without quota", []string{"RateLimit-Reset: 25", "RateLimit-Remaining: 0"}, 25 * time.Second},
		{"RateLimit-Reset, an unreadable rest", []string{"RateLimit-Reset: 25", "RateLimit-Remaining: some"}, 25 * time.Second},

		{"X-RateLimit-Reset, delta", []string{"X-RateLimit-Reset: 25"}, 25 * time.Second},
		{"X-RateLimit-Reset, delta with a fraction", []string{"X-RateLimit-Reset: 0.5"}, 500 * time.Millisecond},
		{"X-RateLimit-Reset, epoch", []string{"X-RateLimit-Reset: 1795176030"}, 30 * time.Second},
		{"X-RateLimit-Reset, epoch in ms", []string{"X-RateLimit-Reset: 1795176030000"}, 30 * time.Second},
		{"X-RateLimit-Reset, epoch gone by", []string{"X-RateLimit-Reset: 1795175000"}, 0},
		{"X-RateLimit-Reset, by the server's clock", []string{"X-RateLimit-Reset: 1795176330", "Date: Fri, 20 Nov 2026 12:05:00 GMT"}, 30 * time.Second},
		{"X-RateLimit-Reset with quota left", []string{"X-RateLimit-Reset: 25", "X-RateLimit-Remaining: 3"}, ignored},
		{"X-RateLimit-Reset without quota", []string{"X-RateLimit-Reset: 25", "X-RateLimit-Remaining: 0"}, 25 * time.Second},
		{"X-RateLimit-Reset, negative", []string{"X-RateLimit-Reset: -25"}, ignored},
		{"X-RateLimit-Reset beyond everything", []string{"X-RateLimit-Reset: " + strings.Repeat("9", 40)}, forever},
		{"X-RateLimit-Reset below Retry-After", []string{"X-RateLimit-Reset: 25", "Retry-After: 10"}, 10 * time.Second},
		{"X-RateLimit-Reset for an unreadable Retry-After", []string{"X-RateLimit-Reset: 25", "Retry-After: later"}, 25 * time.Second},

		{"Azure's milliseconds", []string{"x-ms-retry-after-ms: 700"}, 700 * time.Millisecond},
		{"AWS's milliseconds", []string{"x-amz-retry-after: 1500"}, 1500 * time.Millisecond},
		{"the larger of two vendors", []string{"x-amz-retry-after: 1500", "x-ms-retry-after-ms: 700"}, 1500 * time.Millisecond},
		{"AWS's, unreadable", []string{"x-amz-retry-after: soon"}, ignored},
		{"AWS's beyond everything", []string{"x-amz-retry-after: " + strings.Repeat("9", 40)}, forever},
		{"Retry-After goes before a vendor's", []string{"x-ms-retry-after-ms: 7000", "Retry-After: 2"}, 2 * time.Second},
		{"Retry-After of zero goes before a vendor's", []string{"x-ms-retry-after-ms: 7000", "Retry-After: 0"}, 0},
		{"a vendor's for an unreadable Retry-After", []string{"x-ms-retry-after-ms: 700", "Retry-After: later"}, 700 * time.Millisecond},
		{"a vendor's goes before a reset", []string{"x-ms-retry-after-ms: 700", "RateLimit-Reset: 60"}, 700 * time.Millisecond},

		{"Reset-After, a fraction", []string{"X-RateLimit-Reset-After: 64.57"}, 64570 * time.Millisecond},
		{"Reset-After goes before Reset", []string{"X-RateLimit-Reset-After: 1.5", "X-RateLimit-Reset: 1795176930.123"}, 1500 * time.Millisecond},
		{"Reset for an unreadable Reset-After", []string{"X-RateLimit-Reset-After: soon", "X-RateLimit-Reset: 1795176030"}, 30 * time.Second},
		{"Reset-After with quota left", []string{"X-RateLimit-Reset-After: 1.5", "X-RateLimit-Remaining: 3"}, ignored},
		{"X-RateLimit-Reset, RFC 3339", []string{"X-RateLimit-Reset: 2026-11-20T12:00:30Z"}, 30 * time.Second},
		{"X-RateLimit-Reset, RFC 3339 with an offset", []string{"X-RateLimit-Reset: 2026-11-20T13:00:30+01:00"}, 30 * time.Second},
		{"X-RateLimit-Reset, a duration", []string{"X-RateLimit-Reset: 1m30s"}, 90 * time.Second},
		{"X-RateLimit-Reset, an HTTP date", []string{"X-RateLimit-Reset: Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"RateLimit-Reset, epoch (GitLab)", []string{"RateLimit-Reset: 1795176030", "RateLimit-Remaining: 0"}, 30 * time.Second},

		{"requests", []string{"x-ratelimit-reset-requests: 6m0s"}, 6 * time.Minute},
		{"tokens", []string{"x-ratelimit-reset-tokens: 7.66s"}, 7660 * time.Millisecond},
		{"milliseconds of a duration", []string{"x-ratelimit-reset-requests: 12ms"}, 12 * time.Millisecond},
		{"hours and days", []string{"x-ratelimit-reset-requests: 1d2h3m4s"}, 26*time.Hour + 3*time.Minute + 4*time.Second},
		{"microseconds", []string{"x-ratelimit-reset-requests: 1ms500\u00b5s"}, 1500 * time.Microsecond},
		{"a bare number of seconds", []string{"x-ratelimit-reset-requests: 10"}, 10 * time.Second},
		{"a duration, negative", []string{"x-ratelimit-reset-requests: -6m0s"}, ignored},
		{"a duration with a plus", []string{"x-ratelimit-reset-requests: +6m"}, ignored},
		{"a duration of an unknown unit", []string{"x-ratelimit-reset-requests: 6min"}, ignored},
		{"a duration that breaks off", []string{"x-ratelimit-reset-requests: 6m30"}, ignored},
		{"a unit alone", []string{"x-ratelimit-reset-requests: s"}, ignored},
		{"a duration beyond a Duration", []string{"x-ratelimit-reset-requests: 9999999999h"}, forever},
		{"a sum beyond a Duration", []string{"x-ratelimit-reset-requests: 2562047h2562047h"}, forever},
		{"RFC 3339", []string{"anthropic-ratelimit-requests-reset: 2026-11-20T12:00:30Z"}, 30 * time.Second},
		{"RFC 3339, input tokens", []string{"anthropic-ratelimit-input-tokens-reset: 2026-11-20T12:00:30.5Z"}, 30500 * time.Millisecond},
		{"RFC 3339, output tokens", []string{"anthropic-ratelimit-output-tokens-reset: 2026-11-20T12:00:30Z"}, 30 * time.Second},
		{"RFC 3339, gone by", []string{"anthropic-ratelimit-tokens-reset: 2026-11-20T11:00:30Z"}, 0},
		{"RFC 3339, by the server's clock", []string{"anthropic-ratelimit-tokens-reset: 2026-11-20T12:05:30Z", "Date: Fri, 20 Nov 2026 12:05:00 GMT"}, 30 * time.Second},
		{"RFC 3339, no such day", []string{"anthropic-ratelimit-tokens-reset: 2026-11-31T12:00:30Z"}, ignored},
		{"RFC 3339, year 9999", []string{"anthropic-ratelimit-tokens-reset: 9999-11-30T12:00:30Z"}, forever},

		{"several limits, the one that is used up", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 1h", "x-ratelimit-remaining-tokens: 149984",
		}, time.Second},
		{"several limits, the other one", []string{
			"anthropic-ratelimit-requests-reset: 2026-11-20T13:00:00Z", "anthropic-ratelimit-requests-remaining: 12",
			"anthropic-ratelimit-input-tokens-reset: 2026-11-20T12:00:03Z", "anthropic-ratelimit-input-tokens-remaining: 0",
		}, 3 * time.Second},
		{"several limits, both used up", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6s", "x-ratelimit-remaining-tokens: 0",
		}, 6 * time.Second},
		{"several limits, none used up", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 59",
			"x-ratelimit-reset-tokens: 1h", "x-ratelimit-remaining-tokens: 300",
		}, ignored},
		{"several limits, nothing is said of what remains", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6s",
		}, 6 * time.Second},
		{"several limits, one is known to be used up", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-tokens: 1h",
		}, time.Second},
		{"several limits, what remains is unreadable", []string{
			"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: NaN",
			"x-ratelimit-reset-tokens: 6s", "x-ratelimit-remaining-tokens: some",
		}, 6 * time.Second},
		{"several limits below Retry-After", []string{"x-ratelimit-reset-tokens: 6m0s", "Retry-After: 2"}, 2 * time.Second},
		{"several limits below one", []string{"x-ratelimit-reset-tokens: 6m0s", "RateLimit-Reset: 2"}, 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, readable := max(tc.want, 0), tc.want != ignored
			got, ok := httpretry.ParseRetryAfter(fields(tc.lines...), noon)
			if want == forever && got > 200*365*24*time.Hour {
				got = forever // far beyond any deadline is as good
			}
			if got != want || ok != readable {
				t.Errorf("%q: got %v, %v; want %v, %v", tc.lines, got, ok, want, readable)
			}
		})
	}
}

// TestTwoDigitYears is RFC 9110 section 5.6.7: more than 50 years ahead is the
// past.
func TestTwoDigitYears(t *testing.T) {
	for _, tc := range []struct {
		now   int
		digit string
		year  int // what the two digits mean
	}{
		{2026, "26", 2026},
		{2026, "70", 2070}, // a fixed pivot would say 1970
		{2026, "76", 2076},
		{2026, "77", 1977},
		{2026, "99", 1999},
		{2026, "00", 2000},
		{2080, "05", 2105}, // 25 years ahead
		{2080, "31", 2031},
		{2099, "00", 2100},
		{1999, "49", 2049},
		{1999, "50", 1950},
	} {
		now := time.Date(tc.now, time.June, 1, 0, 0, 0, 0, time.UTC)
		date := time.Date(tc.year, time.April, 1, 0, 0, 0, 0, time.UTC)
		day := date.Weekday().String()
		want := max(date.Sub(now), 0)
		got, ok := httpretry.ParseRetryAfter(fields("Retry-After: "+day+", 01-Apr-"+tc.digit+" 00:00:00 GMT"), now)
		if !ok || got != want {
			t.Errorf("in %d, %s is %d: got %v, %v; want %v", tc.now, tc.digit, tc.year, got, ok, want)
		}
	}
}

// Only 429 and 503 are reasons to heed the rate-limit headers, which many
// servers send with every answer; Retry-After is heeded with every failure.
func TestRateLimitHeadersNeedALimit(t *testing.T) {
	req := newRequest(t, http.MethodGet, "http://dependency.test/", "", "")
	floor := func(status int, lines ...string) time.Duration {
		resp := &http.Response{StatusCode: status, Header: fields(lines...), Body: http.NoBody, Request: req}
		return httpretry.Classify(req, resp, nil).Hint.Floor
	}
	for status, want := range map[int]time.Duration{429: 25 * time.Second, 503: 25 * time.Second, 500: 0, 200: 0} {
		if got := floor(status, "X-RateLimit-Reset: 25"); got != want {
			t.Errorf("%d with X-RateLimit-Reset: 25: got %v, want %v", status, got, want)
		}
	}
	// What a vendor asks for in so many words is heeded with every failure, too.
	for _, status := range []int{429, 503, 500, 502, 504, 408} {
		if got := floor(status, "x-ms-retry-after-ms: 700"); got != 700*time.Millisecond {
			t.Errorf("%d with x-ms-retry-after-ms: 700: got %v", status, got)
		}
		if got := floor(status, "x-amz-retry-after: 700"); got != 700*time.Millisecond {
			t.Errorf("%d with x-amz-retry-after: 700: got %v", status, got)
		}
	}
	for _, line := range []string{
		"RateLimit-Reset: 25", "X-RateLimit-Reset-After: 25", "x-ratelimit-reset-requests: 25s", "x-ratelimit-reset-tokens: 25s",
		`RateLimit: "default";r=0;t=25`,
	} {
		for status, want := range map[int]time.Duration{429: 25 * time.Second, 503: 25 * time.Second, 500: 0, 502: 0, 200: 0} {
			if got := floor(status, line); got != want {
				t.Errorf("%d with %s: got %v, want %v", status, line, got, want)
			}
		}
	}
	for _, limit := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		if got := floor(429, "anthropic-ratelimit-"+limit+"-reset: 9999-11-20T12:00:30Z"); got < 200*365*24*time.Hour {
			t.Errorf("429 with anthropic-ratelimit-%s-reset: got %v", limit, got)
		}
	}
	// The end of a window with quota left is no reason to wait, unless the server
	// says that a limit was reached.
	for status, want := range map[int]time.Duration{429: 30 * time.Second, 503: 0, 500: 0, 200: 0} {
		if got := floor(status, "RateLimit-Remaining: 57", "RateLimit-Reset: 30"); got != want {
			t.Errorf("%d with RateLimit-Remaining: 57 and RateLimit-Reset: 30: got %v, want %v", status, got, want)
		}
	}
	if got := floor(503, "RateLimit-Remaining: 0", "RateLimit-Reset: 30"); got != 30*time.Second {
		t.Errorf("503 with RateLimit-Remaining: 0 and RateLimit-Reset: 30: got %v", got)
	}
	if got := floor(500, "Retry-After: 2"); got != 2*time.Second {
		t.Errorf("500 with Retry-After: 2: got %v", got)
	}
	if got := floor(200, "Retry-After: 2"); got != 0 {
		t.Errorf("200 with Retry-After: 2: got %v", got)
	}
}

// TestWaitHeaders: a policy names headers that tell a wait, each with its form.
func TestWaitHeaders(t *testing.T) {
	date := "Date: Fri, 20 Nov 2026 12:00:00 GMT"
	req := newRequest(t, http.MethodGet, "http://dependency.test/", "", "")
	for _, tc := range []struct {
		name   string
		form   string
		status int
		lines  []string
		want   time.Duration
	}{
		{"X-Wait", waitform.Seconds, 503, []string{"X-Wait: 2.5"}, 2500 * time.Millisecond},
		{"x-wait", waitform.Milliseconds, 429, []string{"X-Wait: 250"}, 250 * time.Millisecond},
		{"X-WAIT", waitform.HTTPDate, 503, []string{"X-Wait: Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"X-Wait", waitform.Unix, 503, []string{"X-Wait: 1795176030"}, 30 * time.Second},
		{"X-Wait", waitform.RFC3339, 503, []string{"X-Wait: 2026-11-20T12:00:30Z"}, 30 * time.Second},
		{"X-Wait", waitform.Duration, 503, []string{"X-Wait: 1m30s"}, 90 * time.Second},
		{"X-Wait", waitform.Auto, 503, []string{"X-Wait: 1m30s"}, 90 * time.Second},
		{"X-Wait", waitform.Auto, 503, []string{"X-Wait: 1795176030000"}, 30 * time.Second},
		{"X-Wait", waitform.Auto, 503, []string{"X-Wait: Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{"X-Wait", waitform.Auto, 500, []string{"X-Wait: 3"}, 3 * time.Second}, // with every failure
		{"X-Wait", waitform.Auto, 200, []string{"X-Wait: 3"}, 0},
		{"X-Wait", waitform.Seconds, 503, []string{"X-Wait: 1m30s"}, 0}, // of another form
		{"X-Wait", waitform.Unix, 503, []string{"X-Wait: " + strings.Repeat("9", 40)}, forever},
		{"X-Wait", waitform.Seconds, 503, []string{"X-Wait: 30", "Retry-After: 2"}, 2 * time.Second},
		{"X-Wait", waitform.Seconds, 503, []string{"X-Wait: 30", "x-amz-retry-after: 2"}, 30 * time.Second},
		{"X-Wait", waitform.Seconds, 503, []string{"X-Wait: 30", "X-Wait: 40"}, 40 * time.Second},
		{"X-Wait", waitform.Seconds, 503, []string{"X-Other: 30"}, 0},
		{"X-RateLimit-Reset", waitform.Milliseconds, 503, []string{"X-RateLimit-Reset: 1500"}, 1500 * time.Millisecond},
		{"X-Rate-Limit-Reset", waitform.Unix, 429, []string{"X-Rate-Limit-Reset: 1795176030"}, 30 * time.Second},
		{"X-Rate-Limit-Reset", waitform.Unix, 503, []string{"X-Rate-Limit-Reset: 1795176030"}, 30 * time.Second},
		{"X-Rate-Limit-Reset", waitform.Unix, 500, []string{"X-Rate-Limit-Reset: 1795176030"}, 0},
		{"X-Rate-Limit-Reset", waitform.Unix, 503, []string{"X-Rate-Limit-Reset: 1795176030", "X-Rate-Limit-Remaining: 7"}, 0},
		{"X-Rate-Limit-Reset", waitform.Unix, 503, []string{"X-Rate-Limit-Reset: 1795176030", "X-Rate-Limit-Remaining: 0"}, 30 * time.Second},
	} {
		p := forbear.Policy{WaitHeaders: map[string]string{tc.name: tc.form}}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		resp := &http.Response{StatusCode: tc.status, Header: fields(append(tc.lines, date)...), Body: http.NoBody, Request: req}
		if got := httpretry.ClassifyBy(&p, req, resp, nil, time.Time{}).Hint.Floor; got != tc.want {
			t.Errorf("%s as %v, %d with %q: got %v, want %v", tc.name, tc.form, tc.status, tc.lines, got, tc.want)
		}
	}
}

// TestWaitHeadersOnTheWire: the transport reads what its Retryer's policy names.
func TestWaitHeadersOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{status(503, "X-Wait: 2500"), status(200)}}
		p := fast
		p.WaitHeaders = map[string]string{"x-wait": waitform.Milliseconds}
		start := time.Now()
		resp, err := over(t, s, p).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		if took := time.Since(start); took < 2500*time.Millisecond {
			t.Errorf("sent again after %v, want 2.5s", took)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"120", "1.5", "-1", "Fri, 20 Nov 2026 12:00:30 GMT", "Friday, 20-Nov-76 12:00:30 GMT",
		"Sun Nov  6 08:49:37 1994", "Sat, 31 Dec 2016 23:59:60 GMT", `"default";r=0;t=30`, "limit=100, remaining=0, reset=30",
		"1795176030000", "9223372036.999", strings.Repeat("9", 40), "Friday, 29-Feb-00 00:00:00 GMT",
		"6m0s", "1d2h3m4.5s", "2562047h47m16.854775807s", "2026-11-20T12:00:30.5+01:00",
	} {
		f.Add(seed, "", int64(1795176000))
		f.Add("5", seed, int64(1795176000))
	}
	f.Fuzz(func(t *testing.T, value, date string, unix int64) {
		const years = 8000 * 365 * 24 * 3600
		now := time.Unix(unix%years, 0)
		for _, name := range []string{
			"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "Ratelimit", "Ratelimit-Reset", "X-Ratelimit-Reset",
			"X-Ratelimit-Reset-After", "X-Ratelimit-Reset-Tokens", "Anthropic-Ratelimit-Tokens-Reset",
		} {
			d, ok := httpretry.ParseRetryAfter(http.Header{name: {value}, "Date": {date}}, now)
			if d < 0 || !ok && d != 0 {
				t.Fatalf("%s: %q, Date: %q: got %v, %v", name, value, date, d, ok)
			}
			for _, form := range waitform.Names {
				p := forbear.Policy{WaitHeaders: map[string]string{"X-Wait": form}}
				resp := &http.Response{StatusCode: 503, Header: http.Header{"X-Wait": {value}, "Date": {date}}}
				if f := httpretry.ClassifyBy(&p, &http.Request{}, resp, nil, now); f.Hint.Floor < 0 || f.Hint.Spread < 0 {
					t.Fatalf("%q as %v: got %+v", value, form, f.Hint)
				}
			}
			// Whatever else is said, the larger wait counts.
			more, _ := httpretry.ParseRetryAfter(http.Header{"Retry-After": {value, "3600"}, "Date": {date}}, now)
			if more < time.Hour {
				t.Fatalf("%q and 3600: got %v", value, more)
			}
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(503, "Retry-After", "5", "GET", "")
	f.Add(409, "Content-Type", "application/problem+json", "POST", `{"type":"in-progress"}`)
	f.Add(429, "X-Ratelimit-Reset", "1795176030", "PUT", "x")
	f.Add(-1, "X-Should-Retry", "false", "", "")
	f.Add(200, "X-Envoy-Overloaded", "", "FOO", "")
	f.Fuzz(func(t *testing.T, status int, name, value, method, text string) {
		req := &http.Request{Method: method, Header: http.Header{httpretry.HeaderKey: {key}}}
		body := &countedBody{Reader: strings.NewReader(text)}
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: body}
		resp.Header[http.CanonicalHeaderKey(name)] = []string{value}
		got := httpretry.Classify(req, resp, nil)
		if left := readAll(t, resp.Body); left != text {
			t.Fatalf("the body was %q, is %q", text, left)
		}
		if body.closed != 0 {
			t.Fatal("the body was closed")
		}
		if good := status >= 100 && status < 400; (got.Class == forbear.ClassSuccess) != good {
			t.Fatalf("status %d is of class %v", status, got.Class)
		}
		if got.Hint.Floor < 0 || got.Hint.Spread < 0 || got.Hint.Spread > 5*time.Second || len(got.Type) > 20 {
			t.Fatalf("got %+v", got)
		}
		if got.Class.Retryable() && status < 500 && status != 408 && status != 429 && got.Type != "in_progress" {
			t.Fatalf("status %d is retryable as %s", status, got.Type)
		}
	})
}
