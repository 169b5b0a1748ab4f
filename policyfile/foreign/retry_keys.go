package foreign

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// retryKey matches the keys by which software of all kinds sets retries. Where nothing
// reads them, the report says that they may matter.
var retryKey = regexp.MustCompile(`(?i)^(max|num|number|perform|no)?[_.-]?(of[_.-]?)?(retry|retries|attempts|max[_.-]?attempts|retry[_.-]?(policy|on|limit|count|strategy|([a-z]+[_.-]?)?attempts|max|times|options?|config)|max[_.-]?retr(y|ies)([_.-]?attempts)?|backoff[_.-]?limit|max[_.-]?hedged[_.-]?attempts)$`)

// aboutRetries reports whether a key sets retries, by its last part if it has several.
func aboutRetries(key string) bool {
	return retryKey.MatchString(key[strings.LastIndexByte(key, '.')+1:])
}

// variableAboutRetries reports whether a variable of an environment sets retries: its name has
// what it is for before that, as in CLIENT_MAX_RETRIES.
func variableAboutRetries(name string) bool {
	for found := name != "" && name == strings.ToUpper(name); found; _, name, found = strings.Cut(name, "_") {
		if aboutRetries(name) {
			return true
		}
	}
	return false
}

// statement matches a line of TOML or HCL that gives a value to a key, or begins a section.
var statement = regexp.MustCompile(`^\s*\[*\s*["']?([\w.-]+)["']?\s*[\]={]`)

// statements looks for settings of retries in a notation that no product has which is read.
func (o *opener) statements(data []byte, in frame) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if m := statement.FindSubmatchIndex(line); m != nil && aboutRetries(string(line[m[2]:m[3]])) {
			o.retry(in.at(policyfile.Position{Line: number, Column: 1 + m[2]}))
		}
	}
}

// patched returns the path of a JSON Patch's operation (RFC 6902) that sets retries
// where no key of the file names them, or nil.
func patched(n *tree.Node) *tree.Node {
	path := n.Get("path")
	if !n.Has("op") || !n.Has("value") || !strings.HasPrefix(path.Text(), "/") {
		return nil
	}
	for part := range strings.SplitSeq(path.Text(), "/") {
		if aboutRetries(part[strings.LastIndex(part, "~1")+1:]) {
			return path
		}
	}
	return nil
}
