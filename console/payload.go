package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// payload is how a page shows bytes: as the text that they are. Nothing decodes them, so
// that no number loses its last digits.
type payload struct {
	Text, Form string
}

// reveal is the query by which the API shows a payload, where a form asks for it.
func reveal(r *http.Request) url.Values {
	return url.Values{"reveal": {strconv.FormatBool(r.Method == http.MethodPost)}}
}

// payloadOf indents JSON, and writes what is not text in base64.
func payloadOf(b []byte) payload {
	var indented bytes.Buffer
	switch {
	case !utf8.Valid(b):
		return payload{base64.StdEncoding.EncodeToString(b), "not UTF-8: in base64"}
	case json.Indent(&indented, b, "", "  ") == nil:
		return payload{indented.String(), "JSON, indented; the values are as they came"}
	}
	return payload{string(b), "as it came"}
}
