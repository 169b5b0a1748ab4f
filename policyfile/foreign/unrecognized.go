package foreign

import (
	"regexp"
	"slices"
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

// unrecognized says what is known of a file that nothing here reads.
func (o *opener) unrecognized(data []byte) {
	// Some templates are YAML by chance. An action within a text, as alerts and
	// workflows have them, is for another program than the one that renders files.
	if !Program(o.name) && template(data) && owed(o.name, data) && (len(o.unclaimed) == 0 || slices.ContainsFunc(o.unclaimed, templated)) {
		o.fault(policyfile.Position{}, "%s", isTemplate)
	}
}

// templated reports whether a document has actions of a template where it has keys: one
// that stands alone is read as a map with a map for a key, which has no text.
func templated(root *tree.Node) (found bool) {
	root.Walk(func(n *tree.Node) bool {
		found = found || slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool { return p.Key == "" || template([]byte(p.Key)) })
		return !found
	})
	return found
}
