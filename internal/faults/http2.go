package faults

import (
	"errors"
	"fmt"
	"reflect"
)

// http2StreamError stands for net/http's own, unexported error of a stream
// reset, down to its As method, by which others may read it. Its name and fields
// must stay those of net/http: classifiers know the type by them.
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e http2StreamError) Error() string {
	return fmt.Sprintf("stream error: stream ID %d; code %d", e.StreamID, e.Code)
}

// As fills any struct that has the same fields. net/http's error does the same, so
// that x/net/http2 can read it without an import.
func (e http2StreamError) As(target any) bool {
	dst, src := reflect.ValueOf(target).Elem(), reflect.ValueOf(e)
	if dst.Kind() != reflect.Struct || dst.NumField() != src.NumField() {
		return false
	}
	for i := range src.NumField() {
		from, to := src.Type().Field(i), dst.Type().Field(i)
		if from.Name != to.Name || !from.Type.ConvertibleTo(to.Type) {
			return false
		}
	}
	for i := range src.NumField() {
		dst.Field(i).Set(src.Field(i).Convert(dst.Field(i).Type()))
	}
	return true
}

// http2GoAwayError stands for net/http's own, unexported error of a stream
// whose connection the server closed with GOAWAY. LastStreamID decides whether a
// stream may have been served: streams above it never were (RFC 9113 section 6.8).
type http2GoAwayError struct {
	LastStreamID uint32
	ErrCode      uint32
	DebugData    string
}

func (e http2GoAwayError) Error() string {
	return fmt.Sprintf("server sent GOAWAY and closed the connection; LastStreamID=%d", e.LastStreamID)
}

// http2NotResent is a stream that was reset with PROTOCOL_ERROR, with a body that cannot be
// sent again. net/http has nothing but a text for it.
func http2NotResent() []error {
	return notResent("stream error: stream ID 1; PROTOCOL_ERROR; received from peer")
}

// http2GoAwayAbove is a stream that a GOAWAY says was not processed.
func http2GoAwayAbove() []error {
	const said = "http2: Transport received Server's graceful shutdown GOAWAY"
	return append(notResent(said), request(errors.New(said))...)
}

func notResent(why string) []error {
	return request(errors.New("http2: Transport: cannot retry err [" + why +
		"] after Request.Body was written; define Request.GetBody to avoid this error"))
}
