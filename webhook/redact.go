package webhook

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxResponse is how much of an answer's body is kept.
const MaxResponse = 4 << 10

const redacted = "[redacted]"

// secretly matches what looks like a credential or an address in a response.
// What a group matches, the name of a field, is kept.
var secretly = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`\b(?:whsec|whsk|sk|pk|ghp|xox[abp])[_-][A-Za-z0-9+/=_-]{8,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*`),
	regexp.MustCompile(`(?i)("?(?:authorization|access_token|refresh_token|token|secret|password|passwd|api_?key|client_secret|cookie)"?\s*[:=]\s*)("[^"]*"|[^\s,;&}]+)`),
	regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`),
}

// Redact makes the beginning of an answer safe to keep: at most 4 KiB of text,
// without the credential that was sent and without what looks like one.
func Redact(body []byte, sent string) string {
	s := strings.ToValidUTF8(string(body), "?")
	if sent != "" {
		s = strings.ReplaceAll(s, sent, redacted)
		if _, token, ok := strings.Cut(sent, " "); ok && len(token) > 4 {
			s = strings.ReplaceAll(s, token, redacted)
		}
	}
	for _, re := range secretly {
		s = re.ReplaceAllString(s, "${1}"+redacted)
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return clip(s, MaxResponse)
}

// clip cuts s at a whole character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
