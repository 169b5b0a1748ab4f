package forward

import (
	"io"
	"net/http"
	"reflect"
)

// expects reports whether the caller holds the body back until it is told to send it
// (RFC 9110 section 10.1.1). The server says 100 by itself when the body is first read,
// which must not be before the target has asked for it.
func expects(r *http.Request) bool {
	if r.ProtoMajor > 1 {
		return continues(r.Body)
	}
	return r.ProtoAtLeast(1, 1) && len(r.Header["Expect"]) > 0
}

// continues reports whether the server will say 100 at the first Read of a body. Over
// HTTP/2 it takes the header away, and leaves this as the one trace of it. Where it
// cannot be seen the target is not asked, and the caller is told to send at once.
func continues(body io.ReadCloser) bool {
	v := reflect.ValueOf(body)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return false
	}
	needs := v.Elem().FieldByName("needsContinue")
	return needs.IsValid() && needs.Kind() == reflect.Bool && needs.Bool()
}

var expectation = []string{"100-continue"}
