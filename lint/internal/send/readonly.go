package send

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Requests that only read may be sent by POST: queries, searches, RPCs, and the
// exchange of tokens. To send them twice does no harm, so that findings about
// them are less sure. readWord matches words of a name or of a path: a target is
// no get, and a thread no read. readStem matches anywhere.
var (
	readWord = regexp.MustCompile(`^(quer(y|ies)|check|expand|evaluat.*|validat.*|verif.*|estimat.*|preview|describe|bulk|auth|authenticate|authorize|sessions?|lookup|list|find|select|get|read|fetch|rpc)$`)
	readStem = regexp.MustCompile(`(?i)graphql|search|token|oauth|login|jsonrpc`)
)

// ReadOnlyName reports whether the name of fn, or a string in it, says that
// what it sends only reads. A literal has the name of the function around it.
// Of strings, only paths and URLs are read, since a log line may say anything.
func ReadOnlyName(fn *ssa.Function) bool {
	outer := fn
	for outer.Parent() != nil {
		outer = outer.Parent()
	}
	if reads(outer.Name()) {
		return true
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		for _, op := range in.Operands(nil) {
			if s, ok := dataflow.ConstString(*op); ok && len(s) > 1 && (s[0] == '/' || len(s) > 8 && s[:4] == "http") && reads(s) {
				return true
			}
		}
	}
	return false
}

// reads reports whether one of the words of a name or of a path is one of
// reading.
func reads(s string) bool {
	if readStem.MatchString(s) {
		return true
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		for len(word) > 0 {
			n := hump(word)
			if readWord.MatchString(strings.ToLower(word[:n])) {
				return true
			}
			word = word[n:]
		}
	}
	return false
}

// hump returns the length of the first word of a name in camel case: of get in
// getURL, and of URL in URLFor.
func hump(s string) int {
	i := 1
	for i < len(s) && isUpper(s[i]) {
		i++
	}
	if i > 1 && i < len(s) { // the last capital begins the next word
		return i - 1
	}
	for i < len(s) && !isUpper(s[i]) {
		i++
	}
	return i
}

// isUpper reports whether b is a capital letter.
func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
