package foreign

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// configLine is one line, split into words, with its position.
type configLine struct {
	words []string
	at    policyfile.Position
}

// setsRetries reports whether a rule sets the number of retries of some requests. One that
// switches them off is a guard.
func (l configLine) setsRetries() bool {
	i := slices.Index(l.words, "set-retries")
	return i > 0 && i+1 < len(l.words) && l.words[i+1] != "0"
}

// haproxySections begin a section of haproxy.cfg, haproxyKeywords are some of what
// stands in one.
var (
	haproxySections = []string{
		"global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "resolvers", "cache", "program",
		"http-errors", "ring", "mailers", "fcgi-app", "log-forward", "log-profile", "crt-store", "traces", "acme",
	}
	haproxyKeywords = []string{"mode", "server", "timeout", "bind", "balance", "option", "log", "maxconn", "default_backend", "use_backend", "http-request", "acl", "retries", "stats", "daemon"}
)

// speaksHAProxy reports whether a text begins with a section of haproxy.cfg that
// has a keyword of its.
func speaksHAProxy(_ string, data []byte) (bool, *policyfile.Fault) {
	opened := false
	for text := range strings.Lines(string(data)) {
		words := haproxyWords(text)
		switch {
		case len(words) == 0 || conditional(words[0]):
		case slices.Contains(haproxySections, words[0]) && (len(words) > 1 || words[0] == "global" || words[0] == "defaults"):
			opened = true
		case !opened:
			return false, nil
		case slices.Contains(haproxyKeywords, words[0]):
			return true, nil
		}
	}
	return false, nil
}

// conditional reports whether a line is one of HAProxy's own conditions, such as
// .if, or a template's. What stands between them is read.
func conditional(word string) bool {
	return strings.HasPrefix(word, "{") || slices.Contains([]string{".if", ".elif", ".else", ".endif", ".notice", ".warning", ".diag", ".alert"}, word)
}

// haproxyTime reads a duration such as "5s", or milliseconds without a unit,
// which is HAProxy's default unit.
func haproxyTime(s string) (time.Duration, bool) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(n) * time.Millisecond, true
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	v, err := time.ParseDuration(s)
	return v, err == nil
}

// haproxyWords splits a line at spaces, respecting quotes, escapes and
// comments as HAProxy does: a quoted # begins no comment.
func haproxyWords(line string) (words []string) {
	var b strings.Builder
	var quote byte
	started := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
			continue
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			c = line[i]
		case quote != 0:
		case strings.HasPrefix(line[i:], "{{") && strings.Contains(line[i:], "}}"): // a template's
			end := i + strings.Index(line[i:], "}}") + 2
			b.WriteString(line[i:end])
			i, started = end-1, true
			continue
		case c == '"' || c == '\'':
			quote, started = c, true
			continue
		case c == '#':
			i = len(line)
			continue
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if started {
				words = append(words, b.String())
				b.Reset()
			}
			started = false
			continue
		}
		b.WriteByte(c)
		started = true
	}
	if started {
		words = append(words, b.String())
	}
	return words
}
