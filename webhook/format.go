package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"
)

const defaultContentType = "application/json"

// Encode returns the request body of a message in the endpoint's format,
// and sets the headers that belong to it.
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
// base64.
func structured(m *Message, ct string) ([]byte, error) {
	event := map[string]any{"datacontenttype": ct}
	for k, v := range attributes(m) {
		event[k] = v
	}
	media, _, _ := mime.ParseMediaType(ct)
	switch isJSON := media == "application/json" || strings.HasSuffix(media, "+json"); {
	case isJSON && json.Valid(m.Body):
		event["data"] = json.RawMessage(m.Body)
	case len(m.Body) > 0:
		event["data_base64"] = base64.StdEncoding.EncodeToString(m.Body)
	}
	return json.Marshal(event)
}

// percent encodes an attribute for a header, as the HTTP binding says: what is
// not printable ASCII, the space, the quote and the percent sign.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
