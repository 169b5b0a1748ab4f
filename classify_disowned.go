package forbear

import (
	"reflect"
	"strings"

	"github.com/forbear-go/forbear/internal/errtype"
)

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
