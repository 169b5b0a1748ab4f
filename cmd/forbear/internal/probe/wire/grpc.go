package wire

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// empty is a gRPC message of no bytes, which is a valid encoding of every message of
// Protocol Buffers: all of its fields are unset.
const empty = "\x00\x00\x00\x00\x00"

// GRPC responds with a gRPC status: OK with an empty message, any other without the header
// of a response, as servers do that turn a call away. Lines are more of its trailers,
// "name: value".
func GRPC(code int, lines ...string) Step {
	return func(x *Exchange) bool {
		switch {
		case x.session == nil:
			return Close(x) // it does not speak gRPC
		case code == 0:
			return x.begins() && x.data(empty, false) && x.header(trailers(code, lines), true)
		}
		x.done()
		return x.header(append(begin(), trailers(code, lines)...), true)
	}
}

// GRPCBegun responds with the header of a response, and then with a status.
func GRPCBegun(code int, lines ...string) Step {
	return func(x *Exchange) bool {
		return x.session != nil && x.begins() && x.header(trailers(code, lines), true)
	}
}

// GRPCHalf responds with a part of a message, and then does something else.
func GRPCHalf(end Step) Step {
	return func(x *Exchange) bool {
		return x.session != nil && x.begins() && x.data("\x00\x00\x00\x03\xe8half", false) && end(x)
	}
}

// GRPCWithoutStatus responds with a message, and ends without a status.
func GRPCWithoutStatus(x *Exchange) bool {
	return x.session != nil && x.begins() && x.data(empty, true)
}

// begins writes the header of a response.
func (x *Exchange) begins() bool {
	x.done()
	return x.header(begin(), false)
}

func begin() [][2]string {
	return [][2]string{{":status", "200"}, {"content-type", "application/grpc"}}
}

func trailers(code int, lines []string) [][2]string {
	list := [][2]string{{"grpc-status", strconv.Itoa(code)}}
	if code != 0 {
		list = append(list, [2]string{"grpc-message", "probe"})
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		list = append(list, [2]string{name, value})
	}
	return list
}

// RetryInfo is the trailer in which the details of a status have a google.rpc.RetryInfo: wait
// so many seconds, at most 127.
func RetryInfo(code int, wait time.Duration) string {
	field := func(number int, bytes string) string {
		return string([]byte{byte(number<<3 | 2), byte(len(bytes))}) + bytes
	}
	varint := func(number, value int) string { return string([]byte{byte(number << 3), byte(value)}) }
	info := field(1, varint(1, int(wait/time.Second)))
	detail := field(1, "type.googleapis.com/google.rpc.RetryInfo") + field(2, info)
	status := varint(1, code) + field(2, "probe") + field(3, detail)
	return "grpc-status-details-bin: " + base64.RawStdEncoding.EncodeToString([]byte(status))
}
