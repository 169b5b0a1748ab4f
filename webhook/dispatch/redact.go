package dispatch

import (
	"strings"

	"github.com/forbear-go/forbear/deadletter"
)

// maxResponse is how much of a response's body is kept, in bytes. Receivers say
// there why they refuse; more than that is a page for a browser.
const maxResponse = 4 << 10

const redacted = "[redacted]"

// redact makes the beginning of a response safe to keep: at most [maxResponse]
// bytes of text, without the credential that was sent and without what looks like
// one. Receivers echo requests, and histories are read by more people than may
// know the secrets.
func redact(body []byte, sent string) string {
	s := strings.ToValidUTF8(string(body), "?")
	if sent != "" {
		s = strings.ReplaceAll(s, sent, redacted)
		// The token without its scheme, unless it is so short that it would be
		// found in ordinary words.
		if _, token, ok := strings.Cut(sent, " "); ok && len(token) > 4 {
			s = strings.ReplaceAll(s, token, redacted)
		}
	}
	return deadletter.Redact(s, maxResponse)
}
