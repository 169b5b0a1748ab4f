package hostiletest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Frames of HTTP/2 (RFC 9113 section 6), of the first stream or of the connection.
const (
	frameData         = 0
	frameHeaders      = 1
	framePriority     = 2
	frameReset        = 3
	frameSettings     = 4
	framePush         = 5
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9

	endStream  = 1 // of data and headers; ack of settings and pings
	endHeaders = 4
)

// frame writes one.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(binary.BigEndian.AppendUint32(append(head, flags), stream)) + payload
}

// number is four bytes.
func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// status is a header block with a status alone (RFC 7541: a literal with the name 8).
func status(code string) string { return "\x08" + string(rune(len(code))) + code }

// field is one of a header block.
func field(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

var (
	settings = frame(frameSettings, 0, 0, "")
	head200  = frame(frameHeaders, endHeaders, 1, status("200"))
	hint2    = frame(frameHeaders, endHeaders, 1, status("103"))
	goodbye  = func(last, code uint32) string { return frame(frameGoAway, 0, 0, number(last)+number(code)) }
)

// HTTP2 returns servers that speak HTTP/2 to a sender that begins with it (RFC 9113
// section 3.3).
func HTTP2() []Server {
	list := []Server{
		// No end.
		{Name: "says nothing", Do: stand(""), Stands: true},
		{Name: "sends no settings", Do: stand(""), Deaf: true, Stands: true},
		{Name: "takes no body", Do: stand(frame(frameSettings, 0, 0, "\x00\x04"+number(0))), Deaf: true, Stands: true},
		{Name: "takes no streams", Do: stand(frame(frameSettings, 0, 0, "\x00\x03"+number(0))), Deaf: true, Conns: 10_000, Keeps: true}, // which is no reason not to connect again
		{Name: "stops in the headers", Do: stand(frame(frameHeaders, 0, 1, status("200"))), Stands: true},
		{Name: "stops in a frame", Do: stand(head200[:7]), Stands: true},
		{Name: "stops in the body", Do: stand(head200 + frame(frameData, 0, 1, "half")), Status: 200, Stands: true},
		{Name: "drips its body", Do: flood(head200, frame(frameData, 0, 1, "x"), 5*time.Millisecond), Status: 200, Stands: true},
		{Name: "drips empty data", Do: flood(head200, frame(frameData, 0, 1, ""), 5*time.Millisecond), Status: 200, Stands: true},
		{Name: "hints for ever", Do: flood("", hint2, 5*time.Millisecond), Stands: true},
		{Name: "pings for ever", Do: flood("", frame(framePing, 0, 0, "12345678"), 5*time.Millisecond), Stands: true},
		{Name: "goes away, and stays", Do: stand(goodbye(1, 0)), Stands: true},

		// Floods.
		{Name: "floods with hints", Do: flood("", strings.Repeat(hint2, 64), 0)},
		{Name: "floods with headers", Do: flood(frame(frameHeaders, 0, 1, status("200")), frame(frameContinuation, 0, 1, strings.Repeat(field("x-a", strings.Repeat("b", 100)), 100)), 0)},
		{Name: "floods with empty headers", Do: flood(frame(frameHeaders, 0, 1, status("200")), strings.Repeat(frame(frameContinuation, 0, 1, ""), 64), 0), Stands: true},
		{Name: "floods with empty data", Do: flood(head200, strings.Repeat(frame(frameData, 0, 1, ""), 64), 0), Status: 200, Stands: true},
		{Name: "floods with a body", Do: flood(head200, frame(frameData, 0, 1, strings.Repeat("b", 16<<10)), 0), Status: 200},
		{Name: "floods with pings", Do: flood("", strings.Repeat(frame(framePing, 0, 0, "12345678"), 64), 0), Stands: true},
		{Name: "floods with settings", Do: flood("", strings.Repeat(settings, 64), 0), Stands: true},
		{Name: "floods with resets of other streams", Do: flood("", strings.Repeat(frame(frameReset, 0, 3, number(8)), 64), 0), Stands: true},

		// Lies.
		{Name: "switches the protocol", Do: stand(frame(frameHeaders, endHeaders|endStream, 1, status("101")))},
		{Name: "has no status", Do: stand(frame(frameHeaders, endHeaders|endStream, 1, field("x-a", "b")))},
		{Name: "has a status that is none", Do: stand(frame(frameHeaders, endHeaders|endStream, 1, status("abc")))},
		{Name: "has more than its length", Do: stand(frame(frameHeaders, endHeaders, 1, status("200")+field("content-length", "2")) + frame(frameData, endStream, 1, "hello")), Status: 200},
		{Name: "has less than its length", Do: stand(frame(frameHeaders, endHeaders, 1, status("200")+field("content-length", "9")) + frame(frameData, endStream, 1, "hello")), Status: 200},
		{Name: "has data before headers", Do: stand(frame(frameData, endStream, 1, "hello"))},
		{Name: "compresses nonsense", Do: stand(frame(frameHeaders, endHeaders|endStream, 1, "\xff\xff\xff\xff\xff\xff"))},
		{Name: "has a frame of 16 MB", Do: stand("\xff\xff\xff\x00\x00\x00\x00\x00\x01")},
		{Name: "pushes", Do: stand(frame(framePush, endHeaders, 1, number(2)+status("200")))},
		{Name: "opens a window too far", Do: stand(frame(frameWindow, 0, 0, number(1<<31-1)))},
		{Name: "depends on itself", Do: stand(frame(framePriority, 0, 1, number(1)+"\x10")), Stands: true},
		{Name: "responds in HTTP/1.1", Do: stand(ok + "Content-Length: 0\r\n\r\n"), Deaf: true},
		{Name: "responds twice", Do: stand(frame(frameHeaders, endHeaders|endStream, 1, status("200")) + frame(frameHeaders, endHeaders|endStream, 1, status("500"))), Status: 200},

		// Breaks.
		{Name: "goes away without it", Do: say(goodbye(0, 0))},
		{Name: "goes away with an error", Do: say(goodbye(1, 2))},
		{Name: "closes", Do: say("")},
		{Name: "closes after the headers", Do: say(head200), Status: 200},
		{Name: "closes in the body", Do: say(head200 + frame(frameData, 0, 1, "half")), Status: 200},
		{Name: "resets the connection", Do: reset("")},
	}
	for code := range uint32(15) {
		list = append(list,
			Server{Name: fmt.Sprintf("resets the stream with %d", code), Do: stand(frame(frameReset, 0, 1, number(code)))},
			Server{Name: fmt.Sprintf("resets the body with %d", code), Do: stand(head200 + frame(frameData, 0, 1, "half") + frame(frameReset, 0, 1, number(code))), Status: 200})
	}
	for _, code := range []int{200, 204, 205, 299, 304, 307, 400, 408, 421, 425, 429, 500, 503, 599} {
		list = append(list, Server{Name: fmt.Sprintf("responds %d", code), Status: code, Do: stand(frame(frameHeaders, endHeaders|endStream, 1, status(fmt.Sprint(code))))})
	}
	for i := range list {
		list[i].HTTP2 = true
	}
	return list
}

// request2 greets, and reads what a sender sends until the first stream has ended.
func request2(c net.Conn) error {
	if _, err := c.Write([]byte(settings)); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return err
	}
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:])>>8)); err != nil {
			return err
		}
		switch kind, flags := head[3], head[4]; {
		case kind == frameSettings && flags&endStream == 0:
			if _, err := c.Write([]byte(frame(frameSettings, endStream, 0, ""))); err != nil {
				return err
			}
		case (kind == frameHeaders || kind == frameData) && flags&endStream != 0:
			return nil
		}
	}
}
