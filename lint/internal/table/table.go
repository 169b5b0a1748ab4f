// Package table finds where code uses a retry library in a way that a table
// judges: the built-in one, or the user's in the same format. It needs the syntax
// and the types of a package alone; what a match means is up to the rules.
package table

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"sync/atomic"

	"go.yaml.in/yaml/v4"
)

var (
	// builtin is the table of the common libraries, in the format of a user's own.
	//
	//go:embed libraries.yaml
	builtin  []byte
	builtins = mustParse(builtin)
	// users is atomic, since analyzers of several packages read it at once.
	users atomic.Pointer[[]*Entry]
)

// mustParse reads the built-in table. It is part of the binary, so that a fault in
// it is one of ours.
func mustParse(b []byte) (list []*Entry) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		panic(fmt.Errorf("library table: %w", err))
	}
	for i, e := range list {
		if err := e.Compile(); err != nil {
			panic(fmt.Errorf("library table: entry %d (%q): %w", i+1, e.Message, err))
		}
	}
	return list
}

// Set sets a user's entries, which have been compiled, instead of those set
// before. It must be called before any analysis runs. An empty list takes the
// user's entries away.
func Set(list []*Entry) { users.Store(&list) }

// all returns the built-in entries and the user's, which add to them and replace
// none.
func all() []*Entry {
	if list := users.Load(); list != nil {
		return slices.Concat(builtins, *list)
	}
	return builtins
}
