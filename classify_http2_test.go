package forbear_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// HTTP/2 frame types of RFC 9113 section 6.
const (
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4
	frameGoAway    = 0x7
)

func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[5:], stream)
	return append(head, payload...)
}

// http2Answer serves one connection of HTTP/2 in the clear: it waits for the
// headers of the first request, answers with the given frames, and closes.
func http2Answer(t *testing.T, answer ...[]byte) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		l.Close() // no second connection
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		out := frame(frameSettings, 0, 0)
		out = append(out, frame(frameSettings, 1, 0)...) // the client's are accepted
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			if _, err := io.CopyN(io.Discard, conn, size); err != nil {
				return
			}
			if head[3] == frameHeaders {
				break
			}
		}
		for _, f := range answer {
			out = append(out, f...)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
	}()
	return "http://" + l.Addr().String()
}

// net/http does not export its HTTP/2 errors; these are the real ones.
func TestClassifyNetKnowsRealHTTP2Errors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer []byte
		class  forbear.Class
		label  string
	}{
		{"GOAWAY at or below the last stream", frame(frameGoAway, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), forbear.ClassTransient, "http2_goaway"},
		{"INTERNAL_ERROR", frame(frameRSTStream, 0, 1, 0, 0, 0, 2), forbear.ClassTransient, "http2_stream_reset"},
		{"ENHANCE_YOUR_CALM", frame(frameRSTStream, 0, 1, 0, 0, 0, 0xb), forbear.ClassThrottled, "http2_enhance_your_calm"},
		{"HTTP_1_1_REQUIRED", frame(frameRSTStream, 0, 1, 0, 0, 0, 0xd), forbear.ClassTerminal, "http2_protocol"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p http.Protocols
			p.SetUnencryptedHTTP2(true)
			transport := &http.Transport{Protocols: &p}
			defer transport.CloseIdleConnections()
			resp, err := (&http.Client{Transport: transport}).Get(http2Answer(t, tt.answer))
			if err == nil {
				resp.Body.Close()
				t.Fatal("no error")
			}
			f, ok := edge.ClassifyNet(err)
			if !ok || f.Class != tt.class || f.Type != tt.label {
				t.Errorf("%v: got %v %q, want %v %q", err, f.Class, f.Type, tt.class, tt.label)
			}
		})
	}
}

// What the server did not process is sent again once, whatever its method and without a
// key; a second time the rules of R-6 hold again. The budget does not refuse it.
func TestDisownedIsSentAgainOnce(t *testing.T) {
	p := forbear.Policy{}
	now, draw := time.Unix(1000, 0), func() float64 { return 0.5 }
	for label, f := range map[string]forbear.Failure{
		"disowned": {Class: forbear.ClassTransient, Type: "http2_goaway", Unsent: true, Disowned: true},
		"refused":  {Class: forbear.ClassTransient, Type: "http2_refused_stream", Unsent: true, Disowned: true},
	} {
		first := forbear.Decide(&p, forbear.State{NeedsKey: true, BudgetSpent: true}, f, now, draw)
		if !first.Retry || first.Wait != 0 || first.Reason != reason.Resend {
			t.Errorf("%s: got %+v, want one re-send at once", label, first)
		}
		next := forbear.State{NeedsKey: true}.After(first)
		if d := forbear.Decide(&p, next, f, now, draw); d.Retry || d.Reason != reason.NoKey {
			t.Errorf("%s, again: got %+v, want no further one without a key", label, d)
		}
		keyed := forbear.State{NeedsKey: true, Key: "k1"}.After(first)
		if d := forbear.Decide(&p, keyed, f, now, draw); !d.Retry || d.Ceiling == 0 {
			t.Errorf("%s, again with a key: got %+v, want a retry after the backoff", label, d)
		}
		keyed.BudgetSpent = true
		if d := forbear.Decide(&p, keyed, f, now, draw); d.Reason != reason.Budget {
			t.Errorf("%s, again with the budget spent: got %+v", label, d)
		}
		if d := forbear.Decide(&p, forbear.State{NeedsKey: true, Unreplayable: true}, f, now, draw); d.Reason != reason.NotReplayable {
			t.Errorf("%s, without its body: got %+v", label, d)
		}
	}
	// One that never found a connection is still R-6's: retry_unsent is the policy's word.
	f := forbear.Failure{Class: forbear.ClassTransient, Type: "connection_refused", Unsent: true}
	if d := forbear.Decide(&p, forbear.State{NeedsKey: true}, f, now, draw); d.Reason != reason.NoKey {
		t.Errorf("refused connection: got %+v", d)
	}
}
