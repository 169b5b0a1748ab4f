package tree

import (
	"fmt"
	"strings"
	"testing"
)

// What a file costs grows with it: a map of many keys is not gone through for each.
func TestManyKeys(t *testing.T) {
	toml := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "[t.k%d]\na = 1\n", i)
		}
		return []byte(b.String())
	}
	hcl := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d {\n a = 1\n}\n", i)
		}
		return []byte(b.String())
	}
	const n = 100_000 // with a square of that, this would take minutes
	root, err := TOML("f.toml", toml(n))
	if err != nil || len(root.Get("t").Fields()) != n {
		t.Errorf("%d tables, %v", len(root.Get("t").Fields()), err)
	}
	if root, err = HCL("f.hcl", hcl(n)); err != nil || len(root.Fields()) != n {
		t.Errorf("%d blocks, %v", len(root.Fields()), err)
	}
}
