package policyfile

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile/internal/former"
)

// A key under its former name is read for a while, and noted with its place; beside the
// new name, or where the new one is unknown, it is a fault like any other.
func TestDeprecatedKeys(t *testing.T) {
	former.Keys["ceiling"] = former.Name{Instead: "cap", Until: "v0.3.0"}
	t.Cleanup(func() { delete(former.Keys, "ceiling") })
	f, err := Parse("f", []byte("dependencies:\n  a: {url: 'http://a', backoff: {ceiling: 7s}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Dependencies[0].Policy.Backoff.Cap.String(); got != "7s" {
		t.Errorf("the cap is %s", got)
	}
	const want = `f:2:34: key "ceiling" of backoff is now called "cap": v0.3.0 will refuse the old name`
	if len(f.Deprecated) != 1 || f.Deprecated[0].Error() != want {
		t.Errorf("noted %v, want %s", f.Deprecated, want)
	}
	for text, want := range map[string]string{
		"dependencies: {a: {url: 'http://a', backoff: {ceiling: 7s, cap: 6s}}}": `"ceiling" and "cap" are the same key`,
		"dependencies: {a: {url: 'http://a', ceiling: 7s}}":                     `unknown key "ceiling"`,
		"dependencies: {a: {url: 'http://a', backoff: {ceiling: x}}}":           `backoff.cap is "x"`,
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
