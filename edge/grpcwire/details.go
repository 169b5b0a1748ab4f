package grpcwire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
)

// maxDetails bounds the base64 text of a status's details that is read. Servers and
// proxies bound their headers at much less.
const maxDetails = 64 << 10

// IdempotencyDomain is the domain of the google.rpc.ErrorInfo by which a server says why
// a call with an idempotency key was not let in.
const IdempotencyDomain = "idempotency.forbear"

// Details is what the details of a status say of a retry. The zero value says nothing.
type Details struct {
	Hint       forbear.Hint // of google.rpc.RetryInfo
	InProgress bool         // google.rpc.ErrorInfo: the server still works on the call's key
}

// DetailsOf reads a grpc-status-details-bin, a google.rpc.Status in base64. What cannot be
// read says nothing.
func DetailsOf(values []string) (d Details) {
	if len(values) != 1 || len(values[0]) > maxDetails {
		return d
	}
	text := strings.TrimRight(values[0], "=") // padded or not, as gRPC has it
	status, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return d
	}
	ok := fields(status, func(number uint64, _ uint64, detail []byte) {
		if number == 3 && detail != nil {
			d.readAny(detail)
		}
	})
	if !ok {
		return Details{}
	}
	return d
}

// readAny reads a google.protobuf.Any.
func (d *Details) readAny(detail []byte) {
	var kind string
	var value []byte
	ok := fields(detail, func(number uint64, _ uint64, b []byte) {
		switch {
		case number == 1 && b != nil:
			kind = string(b)
		case number == 2 && b != nil:
			value = b
		}
	})
	if ok {
		d.Read(kind, value)
	}
}

// Read adds what one detail says, by its type URL and its bytes.
func (d *Details) Read(typeURL string, value []byte) {
	switch typeURL[strings.LastIndexByte(typeURL, '/')+1:] {
	case "google.rpc.RetryInfo":
		d.Hint = hint.Stricter(d.Hint, retryInfo(value))
	case "google.rpc.ErrorInfo":
		d.InProgress = d.InProgress || inProgress(value)
	}
}

// inProgress reads a google.rpc.ErrorInfo.
func inProgress(value []byte) bool {
	var reason, domain string
	ok := fields(value, func(number uint64, _ uint64, b []byte) {
		switch {
		case number == 1 && b != nil:
			reason = string(b)
		case number == 2 && b != nil:
			domain = string(b)
		}
	})
	return ok && reason == "IN_PROGRESS" && domain == IdempotencyDomain
}

// retryInfo reads a google.rpc.RetryInfo. A negative delay says stop, as a negative
// pushback does.
func retryInfo(value []byte) forbear.Hint {
	var seconds, nanos int64
	var there bool
	valid := true
	ok := fields(value, func(number uint64, _ uint64, delay []byte) {
		if number != 1 || delay == nil {
			return
		}
		there = true
		valid = fields(delay, func(number uint64, n uint64, b []byte) {
			switch {
			case number == 1 && b == nil:
				seconds = int64(n)
			case number == 2 && b == nil:
				nanos = int64(int32(n))
			}
		}) && valid
	})
	if !ok || !valid || !there {
		return forbear.Hint{}
	}
	d := span(seconds, nanos)
	if d < 0 {
		return forbear.Hint{Stop: true}
	}
	return floor(d)
}

// span is a google.protobuf.Duration; what does not fit is the longest there is, of its
// sign.
func span(seconds, nanos int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	switch {
	case seconds > most:
		return math.MaxInt64
	case seconds < -most:
		return math.MinInt64
	}
	d := seconds * int64(time.Second)
	sum := d + nanos
	switch {
	case d > 0 && nanos > 0 && sum < 0:
		return math.MaxInt64
	case d < 0 && nanos < 0 && sum >= 0:
		return math.MinInt64
	}
	return time.Duration(sum)
}

// fields calls f for each field of a protobuf message: with the number of a varint, or
// the bytes of a length-delimited field, which are never nil. Fields of fixed length are
// passed over. False means that the message is malformed, or has groups, which no message
// that is read here has.
func fields(message []byte, f func(number, varint uint64, bytes []byte)) bool {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 {
			return false
		}
		message = message[n:]
		switch tag & 7 {
		case 0:
			v, n := binary.Uvarint(message)
			if n <= 0 {
				return false
			}
			f(tag>>3, v, nil)
			message = message[n:]
		case 1, 5:
			size := 8
			if tag&7 == 5 {
				size = 4
			}
			if len(message) < size {
				return false
			}
			message = message[size:]
		case 2:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return false
			}
			end := n + int(length)
			f(tag>>3, 0, message[n:end:end])
			message = message[end:]
		default:
			return false
		}
	}
	return true
}
