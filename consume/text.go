package consume

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// Ids and sources come from producers and may be any bytes. A dead letter is JSON, and
// PostgreSQL takes no zero in a text: there, what is no such text is base64, so that a
// redrive finds the event again.
const notText = "base64:"

// asText returns what a letter says for an id or a source. No two have the same.
func asText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, notText) {
		return s
	}
	return notText + base64.StdEncoding.EncodeToString([]byte(s))
}

// fromText is the inverse of asText.
func fromText(s string) string {
	if text, ok := strings.CutPrefix(s, notText); ok {
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(b)
		}
	}
	return s
}
