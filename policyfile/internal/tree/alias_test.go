package tree

import (
	"fmt"
	"strings"
	"testing"
)

// Nested aliases end, whatever they would expand to, and those that merely share a
// value are read.
func TestAliases(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	if _, err := YAML("f", []byte(bomb.String())); err == nil || !strings.Contains(err.Error(), "aliases expand the file") {
		t.Errorf("got %v", err)
	}
	if _, err := YAML("f", []byte("a: &a [*a]\n")); err == nil || !strings.Contains(err.Error(), "contains itself") {
		t.Errorf("got %v", err)
	}
	roots, err := YAML("f", []byte("a: &a {retries: 3}\nb: *a\nc: {<<: *a, d: 1}\n"))
	if err != nil || roots[0].Get("b").Get("retries").Text() != "3" || roots[0].Get("c").Get("retries").Text() != "3" {
		t.Errorf("got %v, %v", roots, err)
	}
}
