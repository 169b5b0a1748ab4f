package framing

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// ok is a request that every server reads alike.
const ok = "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n"

// TestScan: what has one framing goes through as it is, also in pieces; of what has two
// nothing is left that a server would read.
func TestScan(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		refused    bool
	}{
		{"no body", ok + ok, false},
		{"a length", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + ok, false},
		{"a length said twice", "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + ok, false},
		{"a body like a header", "POST / HTTP/1.1\r\nContent-Length: 54\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n12345" + ok, false},
		{"chunks", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n" + ok, false},
		{"a chunk like a header", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n13\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + ok, false},
		{"trailers", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n" + ok, false},
		{"empty lines before", "\r\n\r\n" + ok, false},
		{"bare line feeds", "POST / HTTP/1.1\nContent-Length: 5\n\nhello" + ok, false},
		{"a long header", "GET / HTTP/1.1\r\nX: " + strings.Repeat("content-length: 1\ttransfer-encoding: chunked", 99) + "\r\n\r\n" + ok, false},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", false},

		{"length and chunks", "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		{"chunks and length", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", true},
		{"in any case", "POST / HTTP/1.1\r\ntransfer-ENCODING:chunked\r\ncontent-LENGTH:5\r\n\r\n0\r\n\r\n", true},
		{"on the second request", ok + "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		{"after a body", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloPOST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		{"HTTP/2 later", ok + "PRI * HTTP/2.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		{"a length that is none", "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello" + ok, true},
		{"a chunk that is none", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n" + ok, true},
		{"a chunk too long", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n" + ok, true},
	} {
		for _, size := range []int{1, 2, 3, 7, 16, 1 << 20} {
			t.Run(fmt.Sprintf("%s by %d", tc.name, size), func(t *testing.T) {
				got := pass(tc.sent, size)
				if changed := got != tc.sent; changed != tc.refused {
					t.Errorf("refused %v, want %v:\n%q", changed, tc.refused, got)
				}
				if tc.refused && strings.HasSuffix(tc.sent, ok) && strings.HasSuffix(got, ok) {
					t.Errorf("what follows is still a request: %q", got)
				}
			})
		}
	}
}

// pass lets text through a scanner, size bytes at a time.
func pass(text string, size int) string {
	var s scanner
	all := []byte(text)
	for p := all; len(p) > 0; {
		n := min(size, len(p))
		s.scan(p[:n])
		p = p[n:]
	}
	return string(all)
}

// FuzzScan: no header block with both framings leaves the scanner as it came, however
// it was cut, and what is refused is refused however it is cut.
func FuzzScan(f *testing.F) {
	f.Add([]byte(ok), 3)
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 5)
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+ok), 4)
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		if size < 1 || size > 1<<10 || len(sent) > 1<<12 {
			return
		}
		whole, parts := pass(string(sent), len(sent)+1), pass(string(sent), size)
		if (whole == string(sent)) != (parts == string(sent)) {
			t.Errorf("cut into pieces of %d it is judged otherwise:\n%q\n%q\n%q", size, sent, whole, parts)
		}
		head, _, found := bytes.Cut(sent, []byte("\r\n\r\n"))
		if !found || bytes.HasPrefix(head, []byte("PRI")) || bytes.HasPrefix(head, []byte("\r")) || bytes.HasPrefix(head, []byte("\n")) || bytes.Contains(head, []byte("\n\n")) {
			return
		}
		lower := strings.ToLower(string(head))
		if strings.Contains(lower, "\r\ncontent-length:") && strings.Contains(lower, "\r\ntransfer-encoding:") && whole == string(sent) && !strings.Contains(lower, "\n\r\n") {
			t.Errorf("passed: %q", sent)
		}
	})
}
