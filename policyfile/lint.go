package policyfile

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Lint says what forbear lint cannot see in source code. Nothing else reads it.
type Lint struct {
	// KeyHeaders names headers that servers take idempotency keys from, besides
	// those with "idempotency" in their names.
	KeyHeaders []string `json:"key_headers,omitempty"`
	// Code says where each dependency is called, so that its policy counts
	// there: patterns of packages and files as those of the go command, from
	// the module's root ("internal/payments/...") or in full.
	Code map[string][]string `json:"code,omitempty"`
}

// maxPatterns bounds the patterns of one list.
const maxPatterns = 1000

// lint reads the section of that name. dependencies are those of the file.
func (d *decoder) lint(f *File, n *yaml.Node, dependencies []string) {
	d.Keys(n, "lint", fields{
		"key_headers": func(v *yaml.Node) { f.Lint.KeyHeaders = d.texts(v, "lint.key_headers") },
		"code": func(v *yaml.Node) {
			// The keys are dependencies of this file: a misspelt one
			// would leave code without its policy.
			for key, value := range d.Entries(v, "lint.code") {
				var name string
				if d.dependency(key, dependencies, &name); name == "" {
					continue
				}
				if f.Lint.Code == nil {
					f.Lint.Code = map[string][]string{}
				}
				f.Lint.Code[name] = d.texts(value, "lint.code."+name)
			}
		},
	})
}

// texts reads a list of short texts, each once, at most maxPatterns.
func (d *decoder) texts(n *yaml.Node, what string) (found []string) {
	for i, item := range d.Items(n, what) {
		if i == maxPatterns {
			d.Fault(item, "%s has too many entries: want at most %[2]d", what, maxPatterns)
			break
		}
		var s string
		if d.Text(item, "an entry of "+what, &s); s != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}
