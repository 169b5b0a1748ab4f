package main

import (
	"strings"
	"testing"
)

// limit holds what docs/size.md says. A template anywhere in the program costs ten
// megabytes; a few of them are room to grow.
const limit = 42_000_000

func TestLimit(t *testing.T) {
	var b strings.Builder
	if err := run(&b, "../../..", limit, 0); err != nil {
		t.Error(err)
	}
	if err := run(&b, "../../..", 1_000_000, 0); err == nil || !strings.Contains(err.Error(), "more than 1000000") {
		t.Errorf("a limit that does not hold: %v", err)
	}
	t.Log(b.String())
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
