package gateway

import (
	"net/http"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/reason"
)

// A call that only met the end of a connection may come again at once, and its caller is
// told. A stream that was refused may have been refused for want of room.
func TestRPCOfARecycledConnectionComesAgain(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    forbear.Failure
		want string
	}{
		{"not processed", forbear.Failure{Class: forbear.ClassTransient, Type: "http2_goaway", Unsent: true, Disowned: true}, "0"},
		{"no connection after all", forbear.Failure{Class: forbear.ClassTransient, Type: "http2_connection_lost", Unsent: true, Disowned: true}, "0"},
		{"let go on, and then lost", forbear.Failure{Class: forbear.ClassTransient, Type: "http2_goaway"}, ""},
		{"refused", forbear.Failure{Class: forbear.ClassTransient, Type: "http2_refused_stream", Unsent: true, Disowned: true}, ""},
	} {
		c, h := &rpc{}, http.Header{}
		c.Failed(tc.f)
		if c.pushback(h, &forbear.Error{Reason: reason.NoKey}); h.Get(grpcwire.HeaderPushback) != tc.want {
			t.Errorf("%s: pushback %q, want %q", tc.name, h.Get(grpcwire.HeaderPushback), tc.want)
		}
		c.Classify(&http.Response{StatusCode: http.StatusOK, Header: http.Header{grpcwire.HeaderStatus: {"14"}}})
		h = http.Header{}
		if c.pushback(h, &forbear.Error{Reason: reason.NoKey}); len(h) != 0 {
			t.Errorf("%s: after a status: %v", tc.name, h)
		}
	}
}
