package main

import "testing"

// limit holds what docs/size.md says. A template anywhere in the program costs ten
// megabytes; a few of them are room to grow.
const limit = 42_000_000

func TestLimit(t *testing.T) {
	size, err := given("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if size > limit {
		t.Errorf("forbear for %s has %d bytes, more than %d: see make size, and docs/size.md for what keeps it small", platform, size, limit)
	}
}

func TestModuleOf(t *testing.T) {
	modules := []string{"example.com/a/b", "gopkg.in/yaml.v3", "example.com/a"}
	for symbol, want := range map[string]string{
		"example.com/a/b/c.F":          "example.com/a/b",
		"example.com/a.(*T).M":         "example.com/a",
		"example.com/ab.F":             "Go's standard library",
		"gopkg.in/yaml%2ev3.Unmarshal": "gopkg.in/yaml.v3",
		"go:func.*":                    "made by the linker for all",
		"slices.Sort[go.shape.[]example.com/a.T,go.shape.int]": "Go's standard library",
	} {
		if got := moduleOf(symbol, modules); got != want {
			t.Errorf("%s: got %s, want %s", symbol, got, want)
		}
	}
}
