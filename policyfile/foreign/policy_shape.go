package foreign

import (
	"bytes"
	"slices"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// sections are the keys of a policy file that hold what is judged. A file with
// neither a section nor a service is no policy file.
var sections = []string{"dependencies", "consumers", "webhooks", "profiles", "waivers", "gateway", "observability", "idempotency"}

// keys are those that stand at the top of a policy file.
var keys = policyfile.Sections()

// shapedLikePolicy reports whether all that stands in the first column of a file
// are keys of a policy file. It saves those, which most files are, from being parsed
// twice; the reader of policy files judges the rest of what they hold.
func shapedLikePolicy(data []byte) bool {
	found, list := false, false
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			// A list where a policy file has a map is another program's.
			if list && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("- ")) {
				return false
			}
			list = false
			continue
		}
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !slices.Contains(keys, string(key)) {
			return false
		}
		list = string(key) != "waivers"
		// A service with fields is another program's.
		found = found || string(key) == "service" && len(value) > 0 || slices.Contains(sections, string(key))
	}
	return found
}

// isPolicy reports whether a document is a policy file, perhaps a faulty one: it
// has a section of such a file in its form, and as many of its keys as others. A
// key with a slip in it counts.
func isPolicy(root *tree.Node) bool {
	// As many others would have to be keys of ours.
	if len(root.Pairs) > 2*len(keys) {
		return false
	}
	section, own, others := false, 0, 0
	for _, p := range root.Pairs {
		key := p.Key
		if near, ok := nearest.Of(key, keys); ok {
			key = near
		}
		if !slices.Contains(keys, key) {
			others++
			continue
		}
		own++
		section = section || slices.Contains(sections, key) && inForm(key, p.Value)
	}
	return section && own >= others || others == 0 && root.Get("service").Text() != ""
}

// inForm reports whether a section may be that of a policy file: other programs
// have dependencies too, as lists or as versions.
func inForm(key string, n *tree.Node) bool {
	switch {
	case key == "waivers":
		return n.Kind == tree.List
	case key == "gateway", key == "observability", key == "idempotency":
		return n.Map()
	case n.Kind == tree.Scalar:
		return n.Value == ""
	}
	return n.Map() && (len(n.Pairs) == 0 || slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool { return p.Value.Map() }))
}
