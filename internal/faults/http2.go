package faults

import (
	"fmt"
	"reflect"
)

// http2StreamError stands for net/http's own, unexported error of a stream
// reset, down to its As method, by which others may read it.
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e http2StreamError) Error() string {
	return fmt.Sprintf("stream error: stream ID %d; code %d", e.StreamID, e.Code)
}

// As fills any struct that has the same fields.
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
// whose connection the server closed with GOAWAY.
type http2GoAwayError struct {
	LastStreamID uint32
	ErrCode      uint32
	DebugData    string
}

func (e http2GoAwayError) Error() string {
	return fmt.Sprintf("server sent GOAWAY and closed the connection; LastStreamID=%d", e.LastStreamID)
}
