package forbear

import (
	"errors"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// Errors are recognised by type, never by message. This file holds the one
// exception: errors of net/http that are nothing but text, made by errors.New on the
// spot or kept to the package, so that no type and no value tells them apart. Each
// is known by its exact text, or by the exact beginning of one that quotes what came
// from the wire; and tests ask the toolchain's own net/http for each of them over
// real connections, so that an update which changes a text fails there.

// plainError is the type of errors that are nothing but text.
var plainError = reflect.TypeOf(errors.New(""))

// wholeTexts are the labels of texts that stand alone. golang.org/x/net/http2 has the
// same ones.
var wholeTexts = map[string]string{
	// The connection did not respond to a ping.
	"http2: client connection lost": connectionLost,
	// The connection was closed while the body was being sent.
	"http2: client conn is closed": connectionLost,
	// A new connection was closed before anything could be sent: the next may be no better.
	"http2: client conn could not be established": connectionLost,
	// Another request on it could not be written.
	"http2: client connection force closed via ClientConn.Close": connectionLost,
	"http: server closed idle connection":                        "connection_closed",
}

// quotingTexts are the labels of texts that quote something between their beginning
// and their end.
var quotingTexts = []struct{ begin, end, label string }{
	{notResent, notResentEnd, "http2_not_resent"},
	// Of the first stream of a connection that ends with an error: the next may be no better.
	{"http2: Transport received GOAWAY from server ErrCode:", "", goAway},
	{`malformed HTTP response "`, `"`, malformedResponse},
	{`malformed HTTP status code "`, `"`, malformedResponse},
	{`malformed HTTP version "`, `"`, malformedResponse},
	{`bad Content-Length "`, `"`, malformedResponse},
	{`bad trailer key "`, `"`, malformedResponse},
	{`invalid empty Content-Length "`, `"`, malformedResponse},
	{"http: message cannot contain multiple Content-Length headers; got [", "]", malformedResponse},
	{"net/http: server response headers exceeded ", " bytes; aborted", malformedResponse},
}

const malformedResponse = "malformed_response"

// plainText knows failures of a connection by their text, and net/textproto's own
// type for headers that are none. The request may have been sent.
func plainText(err error) (class Class, label string, ok bool) {
	ok = anyInTree(err, func(err error) bool {
		if _, isType := err.(textproto.ProtocolError); isType || reflect.TypeOf(err).String() == "*http.unsupportedTEError" {
			label = malformedResponse
		} else if reflect.TypeOf(err) == plainError {
			label = labelOfText(err.Error())
		}
		return label != ""
	})
	return ClassTransient, label, ok
}

// labelOfText returns the label of a text, or "".
func labelOfText(text string) string {
	if label := disownedText(text); label != "" {
		return label
	}
	for _, known := range quotingTexts {
		if rest, ok := strings.CutPrefix(text, known.begin); ok && strings.HasSuffix(rest, known.end) {
			return known.label
		}
	}
	return wholeTexts[text]
}

// mismatchInText returns the label of a server that speaks another protocol, or "":
// HTTP/1 quotes the line that it takes for a response, and HTTP/2 recognizes what
// looks like a response of HTTP/1.
func mismatchInText(err error) string {
	const http1 = "http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"
	text := err.Error()
	if text == http1 {
		return mismatch.HTTP1.Error()
	}
	if reflect.TypeOf(err) != plainError {
		return ""
	}
	quoted, ok := strings.CutPrefix(text, "malformed HTTP response ")
	if !ok {
		return ""
	}
	line, err := strconv.Unquote(quoted)
	if err != nil {
		return ""
	}
	return mismatch.Of([]byte(line), false).Error()
}

// proxyTexts are the statuses with which a proxy refuses a tunnel. net/http keeps
// their text alone, in the proxy's own spelling; these are those of RFC 9110, and of
// the proxies that are met most. They are compared in lower case.
var proxyTexts = map[string]struct {
	class Class
	label string
}{
	"bad gateway":                   {ClassTransient, "proxy_502"},
	"proxy error":                   {ClassTransient, "proxy_502"},
	"service unavailable":           {ClassTransient, "proxy_503"},
	"gateway timeout":               {ClassTimeout, "proxy_504"},
	"gateway time-out":              {ClassTimeout, "proxy_504"},
	"forbidden":                     {ClassTerminal, "proxy_403"},
	"proxy authentication required": {ClassTerminal, "proxy_407"},
}

// proxyRefused knows a tunnel that a proxy did not make. Such a request was never
// sent. The texts are so common that they count only where net/http puts them: right
// below the error of an http.Client, of a request by https.
func proxyRefused(err error) (class Class, label string, ok bool) {
	e, ok := errors.AsType[*url.Error](err)
	if !ok || e.Err == nil || reflect.TypeOf(e.Err) != plainError || !strings.HasPrefix(e.URL, "https://") {
		return 0, "", false
	}
	known, ok := proxyTexts[strings.ToLower(e.Err.Error())]
	return known.class, known.label, ok
}

// What the server has disowned, or never got although a connection stood, net/http sends
// again by itself where it can rewind the body. Where it cannot it returns these texts,
// bare or in a longer one.
const (
	gracefulGoAway = "http2: Transport received Server's graceful shutdown GOAWAY" // the stream is above its last one
	notResent      = "http2: Transport: cannot retry err ["
	notResentEnd   = "] after Request.Body was written; define Request.GetBody to avoid this error"

	goAway         = "http2_goaway"
	connectionLost = "http2_connection_lost"
)

// disownedTexts are their labels.
var disownedTexts = map[string]string{
	gracefulGoAway: goAway,
	// The connection was closed, or full, when the request was about to use it.
	"http2: client conn not usable":                      connectionLost,
	"net/http: cannot rewind body after connection loss": connectionLost,
}

// disownedText returns the label of a text that says that the request was not processed,
// or "". Not all that net/http would send again is: a stream that was reset with
// PROTOCOL_ERROR may have been.
func disownedText(text string) string {
	if cause, quoted := strings.CutPrefix(text, notResent); quoted && strings.HasSuffix(cause, notResentEnd) {
		text = strings.TrimSuffix(cause, notResentEnd)
		if strings.HasPrefix(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM") {
			return errtype.RefusedStream
		}
	}
	return disownedTexts[text]
}

// disowned reports whether a failure with this label is one of a request that was not
// processed, by the word of the server or for want of the connection.
func disowned(label string, err error) bool {
	switch label {
	case errtype.RefusedStream:
		return true
	case goAway, connectionLost: // or it was let go on, and the connection then broke off
		return anyInTree(err, func(err error) bool {
			return reflect.TypeOf(err) == plainError && disownedText(err.Error()) != ""
		})
	}
	return false
}

// anyInTree reports whether match holds for err or anything that it wraps. One
// walk with a type switch allocates nothing, where errors.As would for each
// type.
func anyInTree(err error, match func(error) bool) bool {
	for err != nil {
		if match(err) {
			return true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return anyInTree(err, match) })
		default:
			return false
		}
	}
	return false
}
