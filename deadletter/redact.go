package deadletter

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear/internal/label"
)

// redacted stands for a part that looked like a secret within a text.
const redacted = "[redacted]"

// secrets match what looks like a credential or names a person, in the order in
// which they are looked for. What the groups match, such as the name of a field, is
// kept around the gap. Most texts have none of the characters that a pattern needs:
// looking for those first keeps the price of a failed attempt low.
var secrets = []struct {
	needs string // one of these characters
	*regexp.Regexp
	with string
}{
	{"-", regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)`), redacted},
	// The credentials of an address, up to its last @, and its query.
	{"@", regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s"'<>]*@`), "${1}" + redacted + "@"},
	{"?", regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://[^\s"'<>?]*\?)[^\s"'<>]+`), "${1}" + redacted},
	{"?", regexp.MustCompile(`([\w/.~-]\?)[^\s"'<>?=]+=[^\s"'<>]*`), "${1}" + redacted},
	// USER:PASSWORD@, as drivers of databases have it.
	{"@", regexp.MustCompile(`[^\s"'/@:\[]+:[^\s"'@/][^\s"'@]*@`), redacted + "@"},
	// Headers whose value may hold several words.
	{":=", regexp.MustCompile(`(?i)((?:authorization|cookie)\\?"?\s*[:=]\s*\\?"?)[^\n\r"\\\]]+`), "${1}" + redacted},
	{" \t\n", regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,}`), redacted},
	{"_-", regexp.MustCompile(`\b(?:whsec|whsk|sk|pk|rk|gh[opsur]|github_pat|glpat|xox[abp])[_-][A-Za-z0-9+/=_-]{8,}`), redacted},
	{"A", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), redacted},
	{".", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*`), redacted},
	{":=", regexp.MustCompile(`(?i)((?:authorization|token|secret|passw(?:or)?d|pwd|passphrase|api[_-]?key|cookie|session[_-]?id|credentials?|signature)[\w-]*\\?"?\s*[:=]\s*)(\\"[^"\\]*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|[^\s,;&}]+)`), "${1}" + redacted},
	{"@", regexp.MustCompile(`[\pL\pN._%+-]+@[\pL\pN.-]+\.\pL{2,}`), redacted},
}

// digits match what may be the number of a payment card.
var digits = regexp.MustCompile(`\d(?:[ -]?\d){12,18}`)

// Redact makes text from elsewhere fit to be kept and shown: at most limit bytes of
// valid UTF-8 without control characters but newlines and tabs, and without what
// looks like a credential, a query, an e-mail address or the number of a payment
// card. It errs on the side of hiding. What it cannot recognize, such as a name in a
// sentence, stays.
func Redact(text string, limit int) string {
	s := printable(window(text, limit))
	for _, secret := range secrets {
		if strings.ContainsAny(s, secret.needs) {
			s = secret.ReplaceAllString(s, secret.with)
		}
	}
	return Clip(digits.ReplaceAllStringFunc(s, func(number string) string {
		if luhn(number) {
			return redacted
		}
		return number
	}), limit)
}

// window returns the beginning of a long text, which is all that is searched. A word
// that was cut is left out: the half of a secret is not recognized.
func window(text string, limit int) string {
	most := 4*limit + 1<<10
	if len(text) <= most {
		return text
	}
	whole := len(text)
	text = text[:most]
	if i := strings.LastIndexAny(text, " \t\n"); i >= 0 {
		return text[:i]
	}
	return fmt.Sprintf("(%d bytes without a space)", whole)
}

// printable is s as valid UTF-8 without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if label.Control(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Clip returns at most limit bytes of s, cut at a whole character.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// luhn reports whether the digits of s have the check digit of payment cards.
func luhn(s string) bool {
	sum, double := 0, false
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		d := int(s[i] - '0')
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return sum%10 == 0
}

// quotations match what an error quotes, which may be the payload's: strings, and
// the structs and maps that %v prints.
var quotations = []struct {
	*regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)`), `"` + Masked + `"`},
	{regexp.MustCompile("`[^`]*(?:`|$)"), "`" + Masked + "`"},
	{regexp.MustCompile(`(^|[^\pL\pN])'[^'\n]*'`), "${1}'" + Masked + "'"},
	{regexp.MustCompile(`(?s)\{.*(?:\}|$)`), "{" + Masked + "}"},
	{regexp.MustCompile(`(?s)map\[.*(?:\]|$)`), "map[" + Masked + "]"},
}

// unquoted returns the text of an error without what it quotes.
func unquoted(s string) string {
	for _, q := range quotations {
		s = q.ReplaceAllString(s, q.with)
	}
	return s
}
