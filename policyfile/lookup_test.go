package policyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// TestDependencyIsFoundWithoutASearch: faults, routes and waivers ask for dependencies by
// their names, a file's worth of them at a time.
func TestDependencyIsFoundWithoutASearch(t *testing.T) {
	var b strings.Builder
	b.WriteString("dependencies:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  d%d: {owner: a}\n", i)
	}
	b.WriteString("consumers: {queue: {owner: a}}\nwebhooks: {hook: {owner: a}}\n")
	f, err := policyfile.Parse("policy.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d0", "d999", "queue", "hook"} {
		if d, ok := f.Dependency(name); !ok || d.Name != name {
			t.Errorf("%s: got %q, %v", name, d.Name, ok)
		}
	}
	if n := testing.AllocsPerRun(10, func() { f.Dependency("hook") }); n > 0 {
		t.Errorf("%v allocations for one look, want 0", n)
	}
	// The lists are the caller's to change.
	f.Consumers = append(f.Consumers, policyfile.Dependency{Name: "late"})
	f.Dependencies = f.Dependencies[500:]
	for name, want := range map[string]bool{"d0": false, "d500": true, "d999": true, "queue": true, "late": true, "hook": true, "": false} {
		if d, ok := f.Dependency(name); ok != want || d.Name != name && ok {
			t.Errorf("%s after a change: got %q, %v", name, d.Name, ok)
		}
	}
}
