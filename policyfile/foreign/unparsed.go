package foreign

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// unparsed records a text that could not be parsed. What is inside of another file
// may be any text; and a file that says nothing of retries is not worth a fault.
func (o *opener) unparsed(called string, fault *policyfile.Fault, data []byte, in frame, depth int) {
	message := fault.Message
	if template(data) {
		message = isTemplate
		if bytes.Contains(data, []byte("<%")) {
			message = isERB
		}
		// A line that is an action by itself may stand before the one where YAML gave up.
		number := 0
		for line := range bytes.Lines(data) {
			if number++; number >= fault.Line {
				break
			}
			if line = bytes.TrimLeft(line, " \t"); template(line[:min(len(line), 2)]) {
				fault = &policyfile.Fault{Position: policyfile.Position{Line: number}}
				break
			}
		}
	}
	if depth == 0 && o.format == "" && !owed(o.name, data) {
		if structuredName(called) {
			o.Why = message
		} else if at := retryWord.FindIndex(data); at != nil && !executable(o.name, data) {
			o.retry(string(data[at[0]:at[1]]), policyfile.Position{Line: bytes.Count(data[:at[0]], []byte("\n")) + 1, Column: 1})
		}
		return
	}
	// Many values hold some text or other; a name like a file's says that this one
	// is to be read.
	if depth > 0 && !(structuredName(called) && mentionsRetries(data)) {
		return
	}
	o.fault(in.at(fault.Position), "%s", message)
}

// structuredName reports whether a name is that of a file in YAML or JSON.
func structuredName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".jsonc", ".json5"}, strings.ToLower(filepath.Ext(name)))
}

// owed reports whether a file that cannot be read must not pass: it speaks of retries,
// and by its name it is in a notation that is read here, or of a program that is. Others
// have notations of their own, and scripts stand where the files of programs do.
func owed(name string, data []byte) bool {
	if !mentionsRetries(data) || executable(name, data) {
		return false
	}
	name = untemplated(strings.ToLower(name))
	return structuredName(name) || filepath.Ext(name) == ".asl" || ofProgram(name)
}

// executable reports whether a file without an extension is a script or a binary.
func executable(name string, data []byte) bool {
	return filepath.Ext(name) == "" && (bytes.HasPrefix(data, []byte("#!")) || bytes.HasPrefix(data, []byte("\x7fELF")))
}

const (
	isTemplate = "a template: render it, and check the result"
	isERB      = "a template: render it with erb, and check the result"
)

// template reports whether a text has the marks of a template's actions.
func template(data []byte) bool {
	return bytes.Contains(data, []byte("{{")) || bytes.Contains(data, []byte("{%")) || bytes.Contains(data, []byte("<%"))
}

// mentionsRetries reports whether a text that cannot be parsed may be about retries, by
// the words of the products that are read.
func mentionsRetries(data []byte) bool {
	return retryWord.Match(data)
}

var retryWord = regexp.MustCompile(`(?i)retr(y|ies)|retri(able|es)|next_upstream|backoff_?limit|max_?attempts|maximum_?attempts`)

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
