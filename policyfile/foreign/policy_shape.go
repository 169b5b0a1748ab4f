package foreign

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// Other programs have files with a key "dependencies", "profiles" or "gateway" too, so that
// a key at the top does not make a file a policy. It says what it is: by the service that it
// is of, by the fields of its entries, by its name or the address of its schema, or because a
// user named it. The more of these there are, the more mistakes it may have and still be
// recognized.

// sections are the keys of a policy file that hold what is judged. A file with
// neither a section nor a service is no policy file.
var sections = []string{"dependencies", "consumers", "webhooks", "profiles", "waivers", "gateway", "observability", "idempotency"}

// keys are those that stand at the top of a policy file.
var keys = policyfile.Sections()

// schemaNode is what the fields of a section are known by.
type schemaNode struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Entries    json.RawMessage            `json:"additionalProperties"`
	Items      *schemaNode                `json:"items"`
}

// fieldsOf returns the fields of each section, or of its entries, by the schema.
var fieldsOf = sync.OnceValue(func() map[string][]string {
	var root struct {
		Properties map[string]schemaNode `json:"properties"`
	}
	if err := json.Unmarshal(policyfile.Schema(), &root); err != nil {
		panic(err) // it is part of the program
	}
	found := map[string][]string{}
	for _, section := range sections {
		n := root.Properties[section]
		var entry schemaNode
		switch {
		case n.Items != nil:
			entry = *n.Items
		case n.Properties != nil:
			entry = n
		default:
			_ = json.Unmarshal(n.Entries, &entry) // false has no fields
		}
		for name := range entry.Properties {
			found[section] = append(found[section], name)
		}
	}
	return found
})

// namedPolicy reports whether the name of a file says that it is a policy.
func namedPolicy(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(filepath.Base(filepath.ToSlash(name))), ".y")
	stem = strings.TrimSuffix(stem, ".json")
	return stem == "policy" || strings.HasSuffix(stem, ".policy") || strings.HasSuffix(stem, "-policy") || strings.Contains(stem, "forbear")
}

// proof matches what only a policy file has: the line of its schema, or a field of its
// entries.
var proof = regexp.MustCompile(`(?m)^#.*\$schema=\S*/forbear/\S*schema\.json|[ \t{,](max_retries|per_attempt|min_attempt|retry_unsent|other_layers)[ \t]*:`)

// shapedLikePolicy reports whether all that stands in the first column of a file
// are keys of a policy file, and something proves that it is one. It saves those from
// being parsed twice; the reader of policy files judges the rest of what they hold.
func shapedLikePolicy(data []byte) bool {
	section, list, service := false, false, false
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
		value = bytes.TrimSpace(value)
		service = service || string(key) == "service" && len(value) > 0 && !bytes.ContainsAny(value[:1], "{[&*#|>")
		section = section || slices.Contains(sections, string(key))
	}
	return section && (service || proof.Match(data))
}

// isPolicy reports whether a document is a policy file, perhaps a faulty one. A key with a
// slip in it counts. named says that a user takes it for one, and called that its name does.
func isPolicy(root *tree.Node, named, called bool) bool {
	// As many others would have to be keys of ours.
	if len(root.Pairs) > 2*len(keys) || root.Has("apiVersion") && root.Has("kind") {
		return false
	}
	service := root.Get("service").Text() != "" // one with fields is another program's
	section, own, others := false, 0, 0
	var inside tally
	for _, p := range root.Pairs {
		key := p.Key
		if near, ok := nearest.Of(key, keys); ok {
			key = near
		}
		switch {
		case !slices.Contains(keys, key), key == "service" && p.Value.Map(), key == "version" && strings.ContainsAny(p.Value.Text(), ".v"):
			others++
			if named || called {
				inside.entries(p.Value, "dependencies") // perhaps under a wrong key
			}
		case slices.Contains(sections, key) && inForm(key, p.Value):
			own++
			section = true
			inside.section(p.Value, key)
		default:
			own++
		}
	}
	called = called || strings.Contains(root.Get("$schema").Text(), "/forbear/")
	switch {
	case own < others, own == others && !called:
		return false
	// A service by its name, and nothing but sections of ours.
	case service && section && others == 0:
		return true
	case inside == tally{}: // nothing but what stands at the top
		return others == 0 && (section && called || service && (named || called))
	case named || called:
		return inside.own > inside.others || section && inside.own == inside.others
	}
	return section && inside.ours && inside.own > inside.others
}

// tally counts the fields of sections that are a policy's, and the others. ours says that one
// of them is such that other programs do not have it.
type tally struct {
	own, others int
	ours        bool
}

// common are fields that entries of other programs have, too.
var common = []string{
	"kind", "url", "service", "protocol", "methods", "tls", "health", "secret", "credentials", "keys", "profile", "extends", "total", "connect", "disabled", "strict",
	"listen", "routes", "endpoints", "metrics", "logs", "id", "reason", "owner", "created", "expires", "ticket", "files", "code", "approvals",
}

func (t *tally) section(n *tree.Node, section string) {
	switch section {
	case "gateway", "observability", "idempotency":
		t.entry(n, section)
	default:
		t.entries(n, section)
	}
}

// entries counts the fields of all entries of a map or a list.
func (t *tally) entries(n *tree.Node, section string) {
	for _, p := range n.Fields() {
		t.entry(p.Value, section)
	}
	for _, item := range n.List() {
		t.entry(item, section)
	}
}

func (t *tally) entry(n *tree.Node, section string) {
	known := fieldsOf()[section]
	for _, p := range n.Fields() {
		name, near := nearest.Of(p.Key, known)
		if !near {
			t.others++
			continue
		}
		t.own++
		t.ours = t.ours || !slices.Contains(common, name) || name == "owner" && section != "waivers" && n.Get("owner").Text() != ""
	}
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
