package faulttable

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
)

// Frame types, flags and codes of RFC 9113, as far as the server below needs
// them.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameGoAway   = 0x7

	flagEnd     = 0x1 // END_STREAM
	flagAck     = 0x1
	flagHeaders = 0x4 // END_HEADERS

	codeInternal = 0x2
	codeRefused  = 0x7
	codeCancel   = 0x8
)

// streaming deals with one request that came in full, and reports whether the
// connection lives on.
type streaming func(c *h2, stream uint32, n int) bool

// h2 is a connection over which the site speaks just enough HTTP/2. It decodes no
// headers: the case knows what it has sent.
type h2 struct {
	net.Conn
	s      *site
	bodies map[uint32]string
	number int // of the latest request
}

func (s *site) serveHTTP2(raw net.Conn) {
	c := &h2{Conn: raw, s: s, bodies: map[uint32]string{}}
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	c.frame(frameSettings, 0, 0, nil)
	for {
		kind, flags, stream, payload, err := c.next()
		if err != nil {
			return
		}
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			c.frame(frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			c.frame(framePing, flagAck, 0, payload)
		case kind == frameHeaders:
			c.count(len(payload))
			c.number = s.received()
		case kind == frameData:
			c.count(len(payload))
			c.bodies[stream] += string(payload)
		}
		if (kind == frameHeaders || kind == frameData) && flags&flagEnd != 0 &&
			!s.f.stream(c, stream, c.number) {
			return
		}
	}
}

// next reads a frame.
func (c *h2) next() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(c, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & 0x7fffffff, payload, err
}

func (c *h2) frame(kind, flags byte, stream uint32, payload []byte) {
	frame := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = c.Write(append(frame, payload...))
}

func (c *h2) count(bytes int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.bytes += bytes
}

// take records that the request may have been carried out.
func (c *h2) take(stream uint32) {
	idempotency := ""
	if c.s.f.key {
		idempotency = key
	}
	method := c.s.f.method
	if method == "" && c.s.f.body != nil {
		method = http.MethodPost
	}
	c.s.done(method, idempotency, c.bodies[stream])
}

// respond sends the good response: index 8 of HPACK's static table is
// ":status: 200".
func (c *h2) respond(stream uint32) {
	c.take(stream)
	c.frame(frameHeaders, flagHeaders, stream, []byte{0x88})
	c.frame(frameData, flagEnd, stream, []byte(fine))
}

// goAway says that no stream above last was carried out, nor will be.
func (c *h2) goAway(last, code uint32) {
	c.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

func (c *h2) resetStream(stream, code uint32) {
	c.frame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// onceH2 does the first for the first request of all connections, then responds.
func onceH2(first streaming) streaming {
	return func(c *h2, stream uint32, n int) bool {
		if n == 1 {
			return first(c, stream, n)
		}
		c.respond(stream)
		return true
	}
}
