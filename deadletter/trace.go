package deadletter

import (
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/internal/inbound"
)

// TraceID returns the id of the trace that a message belongs to, or "": that of its
// traceparent (W3C Trace Context), plain or as an attribute of a CloudEvent in any of
// its bindings, or a correlation id that has the form of one.
func TraceID(headers []Header, correlation string) string {
	var values []string
	for _, h := range headers {
		name := strings.ToLower(h.Name)
		for _, prefix := range []string{"ce-", "ce_", "cloudevents:", "cloudevents_"} {
			name = strings.TrimPrefix(name, prefix)
		}
		if name == "traceparent" {
			values = append(values, h.Value)
		}
	}
	if id := inbound.Trace(http.Header{"Traceparent": values}); id != "" {
		return id
	}
	return inbound.Trace(http.Header{"Traceparent": {"00-" + correlation + "-0000000000000001-00"}})
}
