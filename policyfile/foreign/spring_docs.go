package foreign

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springDoc is a document of Spring Boot's configuration: a file, or a part of one. Its
// keys are compared as Spring binds them: see [tree.Dotted] and [tree.Node.Fold].
type springDoc struct {
	name    string
	profile string // that it holds for, or ""
	// scope has the document itself, and behind it those whose settings hold where it
	// says nothing: the ones of the same application that hold for every profile.
	scope scope
}

// scope are nodes of several documents in the order in which they count.
type scope []*tree.Node

// at returns the nodes at a path.
func (s scope) at(keys ...string) (found scope) {
	for _, n := range s {
		if n = n.Fold(keys...); n != nil {
			found = append(found, n)
		}
	}
	return found
}

// get returns the first value at a path, or nil.
func (s scope) get(keys ...string) *tree.Node {
	for _, n := range s {
		if n = n.Fold(keys...); n != nil {
			return n
		}
	}
	return nil
}

// springDocs returns the documents of all files. What a profile leaves out is said by
// the documents without one, which may be in "application.yml" for
// "application-test.properties".
func (r *reader) springDocs() (docs []springDoc) {
	always := map[string][]*tree.Node{}
	roots := make([]*tree.Node, len(r.parts))
	for i, part := range r.parts {
		roots[i] = tree.Dotted(part.Root)
		if app, profile := springApp(part, roots[i]); profile == "" && part.Path == "" {
			// Of two that hold, the later one counts.
			always[app] = slices.Insert(always[app], 0, roots[i])
		}
	}
	for i, part := range r.parts {
		app, profile := springApp(part, roots[i])
		doc := springDoc{name: part.Name, profile: profile, scope: scope{roots[i]}}
		for _, base := range always[app] {
			if base != roots[i] && part.Path == "" {
				doc.scope = append(doc.scope, base)
			}
		}
		docs = append(docs, doc)
	}
	return docs
}

// springApp returns what the documents of one application have in common, and the
// profile that a document holds for, or "".
func springApp(part Part, root *tree.Node) (app, profile string) {
	app = strings.TrimSuffix(part.Name, filepath.Ext(part.Name))
	if folder, base := filepath.Split(app); strings.HasPrefix(base, "application-") || strings.HasPrefix(base, "bootstrap-") {
		base, profile, _ = strings.Cut(base, "-")
		app = folder + base
	}
	for _, keys := range [][]string{{"spring", "config", "activate", "on-profile"}, {"spring", "profiles"}} {
		if v := root.Fold(keys...); v.Text() != "" {
			profile = v.Text()
		}
	}
	// The texts inside of one file are those of several applications.
	if part.inner > 0 {
		app += ":" + strconv.Itoa(part.inner)
	}
	return app, profile
}

// resolved returns a value with placeholders replaced by their defaults: "3" for
// "${RETRIES:3}". open says that the environment may say something else.
func resolved(n *tree.Node) (text string, open bool) {
	text = strings.TrimSpace(n.Text())
	for strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") {
		_, text, _ = strings.Cut(text[2:len(text)-1], ":")
		open = true
	}
	return text, open
}

// springNumber reads a number, or the default where there is none. ok is false when the
// environment has the last word, or nothing can be read.
func springNumber(n *tree.Node, def float64) (v float64, ok bool) {
	if n == nil {
		return def, true
	}
	text, open := resolved(n)
	v, read := (&tree.Node{Value: text}).Number()
	if !read {
		return def, false
	}
	return v, !open
}

// springTime reads a duration, or the default where there is none. One that cannot be read
// is zero and a note, as of [reader.duration].
func (r *reader) springTime(d *policyfile.Dependency, field string, n *tree.Node, def time.Duration) time.Duration {
	r.time(d, field, n, func(n *tree.Node) (time.Duration, bool) {
		text, _ := resolved(n)
		return javaTime(text)
	}, &def)
	return def
}

// springFactor reads a factor, or the default where there is none. One that cannot be read
// is a note, and the default.
func (r *reader) springFactor(d *policyfile.Dependency, n *tree.Node, def float64) float64 {
	text, _ := resolved(n)
	v, ok := (&tree.Node{Value: text}).Number()
	switch {
	case ok:
		return v
	case given(n) != nil:
		r.unjudged(n.At, d.Name, "%s: %q is not a number, so it was not judged", d.Name, n.Text())
	}
	return def
}

// springTrue reads a switch.
func springTrue(n *tree.Node, def bool) bool {
	text, _ := resolved(n)
	if text == "" {
		return def
	}
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "yes") || strings.EqualFold(text, "on")
}

// springList reads a list, or a text with commas. Each item keeps the place of what it
// comes from.
func springList(n *tree.Node) (items []*tree.Node) {
	if n == nil || n.Kind == tree.List {
		return n.List()
	}
	text, _ := resolved(n)
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, &tree.Node{Value: item, At: n.At})
		}
	}
	return items
}

// springRetries sets the number of retries from a setting. lower is what the setting
// counts beside the retries: 1 when it counts the first attempt. It returns false for a
// unit that retries nothing.
func (r *reader) springRetries(d *policyfile.Dependency, n *tree.Node, def, lower int) bool {
	at := placed(n, d.At)
	v, ok := springNumber(n, float64(def))
	if !ok {
		r.open(at, d, "%s: the environment decides how often it retries; %d attempts are assumed", d.Name, int(min(max(v, 0), 1<<20))+1-lower)
	}
	retries(d, int(min(max(v, 0), 1<<20))-lower, at)
	return !d.Policy.Disabled || d.AtLeast
}
