package gateway_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// TestNumbersOfResponses: the largest numbers that a protocol knows, and those beyond.
// What cannot be a whole response never ends like one.
func TestNumbersOfResponses(t *testing.T) {
	for _, tt := range []struct {
		name, response, status, rest string
		sends                        string // "" for once
	}{
		{"the longest length, cut", "200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhello", "200", "\r\n\r\nhello", ""},
		{"the longest length, cut before its first byte", "200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", "502", "problem:upstream", ""},
		{"a longer one", "200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nhello", "502", "problem:upstream", ""},
		{"the largest chunk, cut", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nhello", "200", "5\r\nhello\r\n", ""},
		{"a chunk of 2^64-1, cut", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello", "200", "5\r\nhello\r\n", ""},
		{"a chunk of 2^64", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nhello", "502", "problem:upstream", ""},
		{"the lowest status, alone", "100 Continue\r\n\r\n", "502", "problem:upstream", "4"},
		{"the highest hint", "199 Odd\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "199", "\r\n\r\nok", ""},
		{"the highest status", "999 Odd\r\nContent-Length: 2\r\n\r\nok", "999", "\r\n\r\nok", ""},
		{"a wait of all seconds that a Duration holds", "503 No\r\nRetry-After: 9223372036\r\nContent-Length: 2\r\n\r\nno", "503", "Forbear-Stop: after_exceeds_deadline", "1"},
		{"a wait beyond a Duration", "503 No\r\nRetry-After: 9223372037\r\nContent-Length: 2\r\n\r\nno", "503", "Forbear-Stop: after_exceeds_deadline", "1"},
		{"a wait of 2^64 seconds", "503 No\r\nRetry-After: 18446744073709551616\r\nContent-Length: 2\r\n\r\nno", "503", "Forbear-Stop: after_exceeds_deadline", "1"},
		{"a wait of a hundred digits", "503 No\r\nRetry-After: " + strings.Repeat("9", 100) + "\r\nContent-Length: 2\r\n\r\nno", "503", "Forbear-Stop: after_exceeds_deadline", "1"},
		{"a wait of less than nothing", "503 No\r\nRetry-After: -1\r\nContent-Length: 2\r\n\r\nno", "503", "Forbear-Stop: exhausted", "4"},
	} {
		address := start(t, gateway.Route{Prefix: "/", Target: parse(t, scripted(t, "HTTP/1.1 "+tt.response)), Retryer: retryer(t, quick)})
		got := raw(t, address, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+tt.status+" ") || !strings.Contains(got, tt.rest) ||
			strings.Contains(tt.name, "cut") && strings.HasSuffix(got, "0\r\n\r\n") ||
			tt.sends != "" && !strings.Contains(got, "Forbear-Attempts: "+tt.sends+"\r\n") {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
}

// TestNumbersOfRequests: the same of what callers send.
func TestNumbersOfRequests(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		for range 3 { // long enough for a time that has run over to cut it
			_, _ = w.Write([]byte(strings.Repeat("hello ", 100)))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "done")
	})
	for _, tt := range []struct{ name, header, status, goesOn string }{
		{"the last deadline", "X-Request-Deadline: 9223372036854775807", "200", "X-Request-Deadline: 9223372036854775607"},
		{"a later one counts for nothing", "X-Request-Deadline: 9223372036854775808", "200", "X-Request-Deadline: 9223372036854775808"},
		{"one before 1970 as well", "X-Request-Deadline: -9223372036854775808", "200", "X-Request-Deadline: -9223372036854775808"},
		{"the first deadline", "X-Request-Deadline: 1", "504", ""},
		{"an attempt beyond counting", "X-Retry-Attempt: 99999999999999999999", "200", "X-Retry-Attempt: 0"},
		{"hops beyond counting", "Max-Forwards: 99999999999999999999", "200", "Max-Forwards: 99999999999999999999"},
		{"headers of 255 KiB", "X: " + strings.Repeat("a", 255<<10), "200", ""},
		{"headers of 300 KiB", "X: " + strings.Repeat("a", 300<<10), "431", ""},
		{"a body of 2^63", "Content-Length: 9223372036854775808", "400", ""},
	} {
		seen.Store(nil)
		got := raw(t, address, "GET /up/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+tt.header+"\r\n\r\n")
		name, value, _ := strings.Cut(tt.goesOn, ": ")
		r := seen.Load()
		if !strings.HasPrefix(got, "HTTP/1.1 "+tt.status+" ") || tt.status == "200" && !strings.HasSuffix(got, "done\r\n0\r\n\r\n") || (r != nil) != (tt.status == "200") || r != nil && value != "" && r.Header.Get(name) != value {
			t.Errorf("%s: got %.200q, the service %v", tt.name, got, r)
		}
	}
}

// TestNumbersOfTimeouts: a grpc-timeout has eight digits at most, of hours at the longest,
// which is more than a Duration holds.
func TestNumbersOfTimeouts(t *testing.T) {
	var seen atomic.Pointer[string]
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(new(r.Header.Get("Grpc-Timeout")))
		reply(w, "ok")
	})
	for _, tt := range []struct {
		timeout, code string
		least         int64 // hours that go on; 0 for no change, -1 for nothing that goes on
	}{
		{"99999999H", "0", 2_562_000},
		{"2562047H", "0", 2_562_000},
		{"99999999M", "0", 1_666_000},
		{"99999999n", "0", 0},
		{"1n", "4", -1},
		{"0n", "4", -1},
		{"00000000H", "4", -1},
		{"100000000H", "0", 0}, // nine digits: for the server to judge
		{"-1S", "0", 0},
		{"1.5S", "0", 0},
	} {
		seen.Store(nil)
		got := invoke(t, address, http.Header{"Grpc-Timeout": {tt.timeout}}, nil)
		if tt.timeout == "99999999n" { // a tenth of a second, which a busy machine may need
			continue
		}
		sent := seen.Load()
		if got.err != nil || got.code != tt.code || (sent == nil) != (tt.least < 0) {
			t.Errorf("%s: code %q, %v; the server was asked: %v", tt.timeout, got.code, got.err, sent != nil)
			continue
		}
		switch {
		case tt.least == 0 && *sent != tt.timeout:
			t.Errorf("%s goes on as %s", tt.timeout, *sent)
		case tt.least > 0:
			hours, err := strconv.ParseInt(strings.TrimSuffix(*sent, "H"), 10, 64)
			if minutes, ok := strings.CutSuffix(*sent, "M"); ok {
				hours, err = strconv.ParseInt(minutes, 10, 64)
				hours /= 60
			}
			if err != nil || hours < tt.least {
				t.Errorf("%s goes on as %s", tt.timeout, *sent)
			}
		}
	}
}
