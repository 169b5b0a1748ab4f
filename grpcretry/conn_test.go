package grpcretry

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"
)

// framed returns a connection that has brought the SETTINGS of a server, and the
// server's end.
func framed(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := new(conns).watch(ours).(*conn)
	go func() { _, _ = theirs.Write([]byte{0, 0, 0, frameSettings, 0, 0, 0, 0, 0}) }()
	if n, err := c.Read(make([]byte, 64)); n != 9 || err != nil {
		t.Fatalf("SETTINGS: %d bytes, %v", n, err)
	}
	return c, theirs
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestConnIsLeft(t *testing.T) {
	c, theirs := framed(t)
	if !c.leave(now() + 1) {
		t.Fatal("a silent connection is not left")
	}
	got := make([]byte, 64)
	n, err := c.Read(got)
	if err != nil || !bytes.Equal(got[:n], goAway) {
		t.Fatalf("read %x, %v; want GOAWAY", got[:n], err)
	}
	if isClosed(c.left) {
		t.Error("it counts as left before gRPC has read on")
	}
	go func() { _, _ = theirs.Write([]byte{0, 0, 0, 6, 0, 0, 0, 0, 0}) }()
	if n, err := c.Read(got); n != 9 || err != nil {
		t.Errorf("what the server sends later: %d bytes, %v", n, err)
	}
	if !isClosed(c.left) {
		t.Error("gRPC has read on, and it does not count as left")
	}
}

func TestConnThatIsHeardOfStays(t *testing.T) {
	c, theirs := framed(t)
	if c.leave(c.heard.Load()) {
		t.Error("a connection that was heard of is left")
	}
	if since := now() + 1; !c.leave(since) {
		t.Error("a silent connection is not left")
	} else {
		c.heard.Store(since) // before its reader has taken notice
	}
	go func() { _, _ = theirs.Write([]byte{0, 0, 0, 6, 0, 0, 0, 0, 0}) }()
	got := make([]byte, 64)
	if n, err := c.Read(got); n != 9 || got[3] != 6 || err != nil {
		t.Errorf("read %x, %v; want what the server sent", got[:n], err)
	}
	if isClosed(c.left) {
		t.Error("it counts as left")
	}
}

func TestConnThatDiedWithinAFrame(t *testing.T) {
	c, theirs := framed(t)
	go func() { _, _ = theirs.Write([]byte{0, 0, 8, 0}) }()
	got := make([]byte, 64)
	if n, err := c.Read(got); n != 4 || err != nil {
		t.Fatalf("half a head: %d bytes, %v", n, err)
	}
	c.leave(now() + 1)
	if n, err := c.Read(got); n != 0 || err == nil {
		t.Errorf("read %x, %v; want an error, after which gRPC closes", got[:n], err)
	}
}

func TestConnClosedByGRPC(t *testing.T) {
	c, _ := framed(t)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // the transport's own
	if _, err := c.Read(make([]byte, 64)); err == nil || isClosed(c.left) {
		t.Errorf("%v, left %v; want the deadline's error, and that it is not left yet", err, isClosed(c.left))
	}
	if _ = c.Close(); !isClosed(c.left) || len(c.all.all) != 0 {
		t.Error("a closed connection is kept")
	}
	c, _ = framed(t)
	c.leave(now() + 1)
	_, _ = c.Read(make([]byte, 64))
	if _ = c.SetReadDeadline(time.Unix(1, 0)); !isClosed(c.left) {
		t.Error("gRPC is about to close what it was told to leave, and it does not count as left")
	}
}

func TestFrames(t *testing.T) {
	settings := []byte{0, 0, 6, frameSettings, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100}
	headers := []byte{0, 0, 2, frameHeaders, 0, 0, 0, 0, 1, 0x88, 0x88}
	continued := []byte{0, 0, 1, frameContinuation, flagEndHeaders, 0, 0, 0, 1, 0x88}
	data := []byte{0, 0, 3, 0, 0, 0, 0, 0, 1, 1, 2, 3}
	for _, tc := range []struct {
		name            string
		bytes           []byte
		framed, between bool
	}{
		{"nothing", nil, false, true},
		{"settings", settings, true, true},
		{"half a head", slices.Concat(settings, data[:4]), true, false},
		{"a head", slices.Concat(settings, data[:9]), true, false},
		{"half a payload", slices.Concat(settings, data[:10]), true, false},
		{"data", slices.Concat(settings, data, data), true, true},
		{"headers to be continued", slices.Concat(settings, headers), true, false},
		{"headers continued", slices.Concat(settings, headers, continued, data), true, true},
		{"TLS", []byte{22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3, 1, 2, 3, 4, 5, 6, 7}, false, true},
		{"a TLS record of SETTINGS' number", []byte{22, 3, 3, 4, 0, 2, 0, 0, 118, 3, 3}, false, false},
		{"data first", data, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 7, 1 << 10} {
				var f frames
				framed := false
				for part := range slices.Chunk(tc.bytes, size) {
					framed = f.pass(part)
				}
				if framed != tc.framed || framed && f.between() != tc.between {
					t.Errorf("in parts of %d: framed %v, between frames %v; want %v, %v", size, framed, f.between(), tc.framed, tc.between)
				}
			}
		})
	}
}

// A timeout is the fault of no one when a connection that had served went silent; on a
// new one that never served it speaks against the server.
func TestOnlyWhatHadServedIsGone(t *testing.T) {
	const took = int64(time.Second)
	c, theirs := framed(t)
	at := c.heard.Load() + took
	if leaving, gone := c.all.leave(at, took); len(leaving) != 1 || gone {
		t.Errorf("a new connection: %d left, gone %v; want 1, false", len(leaving), gone)
	}
	got := make([]byte, 64)
	_, _ = c.Read(got) // the GOAWAY

	c, theirs = framed(t)
	go func() { _, _ = theirs.Write([]byte{0, 0, 1, frameHeaders, flagEndHeaders, 0, 0, 0, 1, 0x88}) }()
	_, _ = c.Read(got)
	at = c.heard.Load() + took
	for _, tc := range []struct {
		now  int64
		gone bool
	}{{at, true}, {at + took/2, true}, {at + took, false}} {
		if _, gone := c.all.leave(tc.now, took); gone != tc.gone {
			t.Errorf("an attempt that began %v after the silence: gone %v, want %v", time.Duration(tc.now-at-took), gone, tc.gone)
		}
		if tc.now == at {
			_, _ = c.Read(got)
		}
	}

	// What follows soon is a server that is slow, for the books.
	for _, tc := range []struct {
		after time.Duration
		gone  bool
	}{{5 * time.Second, false}, {31 * time.Second, true}} {
		c2, theirs := framed(t)
		c2.all.gone = at
		go func() { _, _ = theirs.Write([]byte{0, 0, 1, frameHeaders, flagEndHeaders, 0, 0, 0, 1, 0x88}) }()
		_, _ = c2.Read(got)
		c2.heard.Store(at)
		if leaving, gone := c2.all.leave(at+int64(tc.after), took); len(leaving) != 1 || gone != tc.gone {
			t.Errorf("%v after an incident: %d left, gone %v", tc.after, len(leaving), gone)
		}
	}
}
