//forbear:plain nothing runs at once
package mismatch

import "testing"

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, first  string
		http1, http2 Error
	}{
		{"nothing", "", "", ""},
		{"HTTP/1", "HTTP/1.1 400 Bad Request\r\n", "", HTTP1},
		{"SETTINGS", "\x00\x00\x06\x04\x00\x00\x00\x00\x00", HTTP2, ""},
		{"empty SETTINGS", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", HTTP2, ""},
		{"PING", "\x00\x00\x08\x06\x00\x00\x00\x00\x00", "", Other},
		{"an alert", "\x15\x03\x01\x00\x02\x02\x46", TLS, TLS},
		{"a handshake", "\x16\x03\x03\x00\x10", TLS, TLS},
		{"SSH", "SSH-2.0-OpenSSH_9.6\r\n", "", Other},
		{"too short", "S", "", ""},
	} {
		if a, b := Of([]byte(tt.first), false), Of([]byte(tt.first), true); a != tt.http1 || b != tt.http2 {
			t.Errorf("%s: got %q for HTTP/1 and %q for HTTP/2, want %q and %q", tt.name, a, b, tt.http1, tt.http2)
		}
	}
}
