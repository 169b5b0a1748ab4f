//forbear:plain nothing runs at once
package grpcwire_test

import (
	"encoding/base64"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/errtype"
)

func TestIs(t *testing.T) {
	for value, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc+json; a=b": true,
		"APPLICATION/GRPC": true, "application/grpc;charset=utf-8": true, "application/grpc ; a=b": true,
		"application/grpc-web": false, "application/grpc-web+proto": false, "application/grpc-web-text": false,
		"application/grpcx": false, "application/json": false, "": false, "application/grp": false,
	} {
		if got := grpcwire.Is(http.Header{"Content-Type": {value}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if grpcwire.Is(http.Header{}) || grpcwire.Is(http.Header{"Content-Type": {"application/grpc", "text/plain"}}) {
		t.Error("no Content-Type, or two, are believed")
	}
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		values []string
		code   uint32
		ok     bool
	}{
		{nil, 2, false},
		{[]string{"0"}, 0, true},
		{[]string{"14"}, 14, true},
		{[]string{"99"}, 99, true},
		{[]string{"UNAVAILABLE"}, 2, true},
		{[]string{""}, 2, true},
		{[]string{"-1"}, 2, true},
		{[]string{"4294967296"}, 2, true},
		{[]string{"0", "14"}, 2, true},
	} {
		if code, ok := grpcwire.Status(http.Header{grpcwire.HeaderStatus: tc.values}); code != tc.code || ok != tc.ok {
			t.Errorf("%q: %d, %v", tc.values, code, ok)
		}
	}
}

// TestFromHTTP: the table of gRPC's specification.
func TestFromHTTP(t *testing.T) {
	for status, want := range map[int]uint32{
		400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14, 500: 2, 200: 2, 302: 2, 405: 2, 0: 2,
	} {
		if got := grpcwire.FromHTTP(status); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"plain text":             "plain text",
		"100%":                   "100%25",
		"\t\ntest with\r\n☺\t\n": "%09%0Atest with%0D%0A%E2%98%BA%09%0A",
		"\x7f\x00":               "%7F%00",
	} {
		got := grpcwire.EncodeMessage(text)
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if back := grpcwire.DecodeMessage(got); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
	for text, want := range map[string]string{"%": "%", "%4": "%4", "%zz%41": "%zzA", "a%e2%98%BAb": "a☺b"} {
		if got := grpcwire.DecodeMessage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := grpcwire.EncodeMessage(strings.Repeat("x", 5000)); len(got) != 1024 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestParseTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1n": 1, "1u": time.Microsecond, "100m": 100 * time.Millisecond, "2S": 2 * time.Second, "3M": 3 * time.Minute,
		"1H": time.Hour, "0S": 0, "99999999H": math.MaxInt64, "99999999n": 99_999_999, "00000001S": time.Second,
	} {
		if got, ok := grpcwire.ParseTimeout([]string{value}); got != want || !ok {
			t.Errorf("%q: %v, %v", value, got, ok)
		}
	}
	for _, bad := range []string{"", "S", "1", "1s", "-1S", "+1S", "1.5S", "123456789S", " 1S", "1S ", "1x"} {
		if got, ok := grpcwire.ParseTimeout([]string{bad}); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if _, ok := grpcwire.ParseTimeout([]string{"1S", "1S"}); ok {
		t.Error("two timeouts are believed")
	}
}

// FuzzTimeout: what is written can be read, is never longer than what was said, and
// loses at most the eighth digit.
func FuzzTimeout(f *testing.F) {
	for _, d := range []int64{0, -1, 1, 99_999_999, 100_000_000, int64(time.Hour), math.MaxInt64} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		d := time.Duration(n)
		text := grpcwire.FormatTimeout(d)
		got, ok := grpcwire.ParseTimeout([]string{text})
		if !ok || got <= 0 {
			t.Fatalf("%v became %q: %v, %v", d, text, got, ok)
		}
		if d > 0 && (got > d || float64(d-got) > float64(d)/1e5) {
			t.Errorf("%v became %q, which is %v", d, text, got)
		}
	})
}

func TestFormatPushback(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "0", -time.Second: "0", 1: "1", time.Millisecond: "1", time.Millisecond + 1: "2", 2 * time.Second: "2000", math.MaxInt64: "9223372036855",
	} {
		if got := grpcwire.FormatPushback(wait); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
	if h := grpcwire.PushbackHint([]string{grpcwire.Stop}); !h.Stop {
		t.Error("the stop of this package does not stop")
	}
}

// field writes one length-delimited field of a message.
func field(number byte, value string) string {
	return string([]byte{number<<3 | 2, byte(len(value))}) + value
}

// TestDetailsOf: the wait as a server sends them. That protobuf's own encoding is
// read likewise is checked where protobuf may be imported.
func TestDetailsOf(t *testing.T) {
	const url = "type.googleapis.com/google.rpc.RetryInfo"
	two := field(1, "\x08\x02\x10\x80\xca\xb5\xee\x01") // 2.5 s
	status := func(details ...string) string {
		var s strings.Builder
		s.WriteString("\x08\x08" + field(2, "busy"))
		for _, d := range details {
			s.WriteString(field(3, d))
		}
		return s.String()
	}
	any := func(kind, value string) string { return field(1, kind) + field(2, value) }
	floor := forbear.Hint{Floor: 2500 * time.Millisecond, Spread: 250 * time.Millisecond}
	for _, tc := range []struct {
		name, status string
		want         forbear.Hint
	}{
		{"a delay", status(any(url, two)), floor},
		{"after another detail", status(any("x/google.rpc.ErrorInfo", "abc"), any(url, two)), floor},
		{"of another type", status(any("x/google.rpc.QuotaFailure", two)), forbear.Hint{}},
		{"no delay", status(any(url, "")), forbear.Hint{}},
		{"of no length", status(any(url, field(1, ""))), forbear.Hint{}},
		{"negative", status(any(url, field(1, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))), forbear.Hint{Stop: true}},
		{"a length beyond the end", "\x1a\x7f" + "abc", forbear.Hint{}},
		{"a tag that is cut", status() + "\x80", forbear.Hint{}},
		{"a group", "\x1b\x1c", forbear.Hint{}},
		{"fixed fields before", "\x11abcdefgh\x15abcd" + status(any(url, two)), floor},
		{"nothing", "", forbear.Hint{}},
	} {
		for name, encoding := range map[string]*base64.Encoding{"padded": base64.StdEncoding, "bare": base64.RawStdEncoding} {
			if got := grpcwire.DetailsOf([]string{encoding.EncodeToString([]byte(tc.status))}); got != (grpcwire.Details{Hint: tc.want}) {
				t.Errorf("%s, %s: %+v, want %+v", tc.name, name, got, tc.want)
			}
		}
	}
	for _, bad := range [][]string{nil, {"!"}, {"", ""}, {strings.Repeat("A", 100_000)}} {
		if got := grpcwire.DetailsOf(bad); got != (grpcwire.Details{}) {
			t.Errorf("%d values: %+v", len(bad), got)
		}
	}
}

// FuzzRetryInfo: no input panics, and none says a wait below zero.
func FuzzRetryInfo(f *testing.F) {
	f.Add("google.rpc.RetryInfo", []byte("\x0a\x02\x08\x02"))
	f.Add("google.rpc.RetryInfo", []byte("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, kind string, value []byte) {
		var d grpcwire.Details
		d.Read(kind, value)
		if h := d.Hint; h.Floor < 0 || h.Spread < 0 || h.Stop && h.Floor > 0 {
			t.Errorf("%+v", h)
		}
		grpcwire.DetailsOf([]string{base64.StdEncoding.EncodeToString(value)})
	})
}

// A server's word that it is still at work counts from its own domain, with the code
// that goes with it, and on a call that has a key.
func TestJudgeInProgress(t *testing.T) {
	info := func(reason, domain string) []byte { return []byte(field(1, reason) + field(2, domain)) }
	for _, tc := range []struct {
		name   string
		code   uint32
		detail []byte
		keyed  bool
		want   string
	}{
		{"at work on our key", 10, info("IN_PROGRESS", grpcwire.IdempotencyDomain), true, errtype.InProgress},
		{"on a call without a key", 10, info("IN_PROGRESS", grpcwire.IdempotencyDomain), false, "grpc_ABORTED"},
		{"of another domain", 10, info("IN_PROGRESS", "example.com"), true, "grpc_ABORTED"},
		{"for another reason", 10, info("OUTCOME_UNKNOWN", grpcwire.IdempotencyDomain), true, "grpc_ABORTED"},
		{"under another code", 14, info("IN_PROGRESS", grpcwire.IdempotencyDomain), true, "grpc_UNAVAILABLE"},
		{"cut short", 10, info("IN_PROGRESS", grpcwire.IdempotencyDomain)[:20], true, "grpc_ABORTED"},
		{"nothing said", 10, nil, true, "grpc_ABORTED"},
	} {
		var d grpcwire.Details
		d.Read("type.googleapis.com/google.rpc.ErrorInfo", tc.detail)
		f := grpcwire.Judge(tc.code, d, []string{"20"}, tc.keyed)
		if f.Type != tc.want || f.Class != forbear.ClassTransient || f.Hint.SameKey != (tc.want == errtype.InProgress) || f.Hint.Floor != 20*time.Millisecond {
			t.Errorf("%s: %+v, want %s", tc.name, f, tc.want)
		}
	}
}
