package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// defaultContentType is that of a message which names none.
const defaultContentType = "application/json"

// Encode returns the request body of a message in the endpoint's format, and sets
// the headers that belong to it. The two CloudEvents formats follow the JSON
// event format and the binary content mode of the HTTP binding, version 1.0.
func (m *Message) Encode(f Format, h http.Header) ([]byte, error) {
	ct := cmp.Or(m.ContentType, defaultContentType)
	switch f {
	case FormatStructured:
		h.Set("Content-Type", "application/cloudevents+json")
		return structured(m, ct)
	case FormatBinary:
		for name, v := range attributes(m) {
			h.Set("Ce-"+name, percent(v))
		}
	}
	h.Set("Content-Type", ct)
	return m.Body, nil
}

// attributes are a message's CloudEvents attributes, but for its content type.
// Those that CloudEvents requires have a value even when the message names none.
func attributes(m *Message) map[string]string {
	a := map[string]string{
		"specversion": "1.0",
		"id":          m.ID,
		"source":      cmp.Or(m.Source, "urn:forbear"),
		"type":        cmp.Or(m.Type, "forbear.message"),
	}
	if m.Subject != "" {
		a["subject"] = m.Subject
	}
	if m.Key != "" {
		a["partitionkey"] = m.Key
	}
	if !m.Created.IsZero() {
		a["time"] = m.Created.UTC().Format(time.RFC3339Nano)
	}
	return a
}

// structured is the JSON event format: JSON data as it is, other data in
// base64. A body that only claims to be JSON goes as base64 too, since it would
// make the whole event unreadable.
func structured(m *Message, ct string) ([]byte, error) {
	event := map[string]any{"datacontenttype": ct}
	for k, v := range attributes(m) {
		event[k] = v
	}
	media, _, _ := mime.ParseMediaType(ct)
	switch isJSON := media == "application/json" || strings.HasSuffix(media, "+json"); {
	case isJSON && json.Valid(m.Body) && utf8.Valid(m.Body): // the former passes over bytes that are no text
		event["data"] = json.RawMessage(m.Body)
	case len(m.Body) > 0:
		event["data_base64"] = base64.StdEncoding.EncodeToString(m.Body)
	}
	return json.Marshal(event)
}

// percent encodes an attribute for a header, as the HTTP binding says: what is
// not printable ASCII, the space, the quote and the percent sign. Header values
// are ASCII, and CloudEvents attributes may be any text.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
