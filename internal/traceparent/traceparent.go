// Package traceparent reads the headers of W3C Trace Context, which say where in a
// trace a call, an event or a message stands.
package traceparent

import "strings"

// maxState bounds a tracestate, in bytes: what the recommendation wants to be passed
// on at least (section 3.3.1.5).
const maxState = 512

// ID returns the id of the trace that a traceparent names, or "" for a value that is not one
// (section 3.2.2). Versions to come may have more at the end.
func ID(parent string) string {
	const length = len("00-") + 32 + len("-") + 16 + len("-00")
	if len(parent) < length || len(parent) > length && (parent[:2] == "00" || parent[length] != '-') || len(parent) > maxState {
		return ""
	}
	version, id, span, flags := parent[:2], parent[3:35], parent[36:52], parent[53:55]
	if parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || version == "ff" || zero(id) || zero(span) ||
		!hex(version) || !hex(id) || !hex(span) || !hex(flags) || !visible(parent[length:]) {
		return ""
	}
	return id
}

// State returns a tracestate that may be passed on, or "": what is too long or could
// break a line.
func State(s string) string {
	if len(s) > maxState || !visible(s) {
		return ""
	}
	return s
}

func zero(s string) bool { return strings.Trim(s, "0") == "" }
func hex(s string) bool  { return strings.Trim(s, "0123456789abcdef") == "" }

func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
