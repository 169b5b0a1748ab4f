// Package eventstream recognizes Server-Sent Events, whose bodies may have nothing to
// say for any time.
package eventstream

import (
	"net/http"
	"strings"
)

// ContentType is the media type of Server-Sent Events.
const ContentType = "text/event-stream"

// Is reports whether a header's Content-Type is that of Server-Sent Events, whatever its
// parameters.
func Is(h http.Header) bool {
	value := h.Get("Content-Type")
	if len(value) < len(ContentType) || !strings.EqualFold(value[:len(ContentType)], ContentType) {
		return false
	}
	rest := value[len(ContentType):]
	return rest == "" || rest[0] == ';' || rest[0] == ' '
}
