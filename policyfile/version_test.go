package policyfile

import (
	"strings"
	"testing"
)

// A file says which version of the format it is of, or is of the first.
func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"service: a\n", 0},
		{"version: 1\nservice: a\n", 1},
		{"service: a\nversion: 1\n", 1},
	} {
		f, err := Parse("f", []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if f.Version != tt.want {
			t.Errorf("%q: got version %d, want %d", tt.text, f.Version, tt.want)
		}
		back, err := Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if written := strings.HasPrefix(string(back), "version: 1\n"); written != (tt.want == 1) {
			t.Errorf("%q is written as %q", tt.text, back)
		}
		if again, err := Parse("f", back); err != nil || again.Version != tt.want {
			t.Errorf("%q: read back as %d, %v", back, again.Version, err)
		}
	}
}

// A file of another version has one fault, whatever else it holds that is not of
// this one.
func TestVersionOfAnotherForbear(t *testing.T) {
	for text, want := range map[string]string{
		"service: a\nversion: 2\nquotas: {}\n": `f:2:10: version is "2": this forbear reads version 1`,
		"version: 0\n":                         `f:1:10: version is "0": this forbear reads version 1`,
		"version: 1.0\n":                       `f:1:10: version is "1.0": this forbear reads version 1`,
		"version: -1\n":                        `f:1:10: version is "-1": this forbear reads version 1`,
		"version: one\n":                       `f:1:10: version is "one": this forbear reads version 1`,
		"version: [1]\n":                       `f:1:10: version is a list: want 1`,
		"version:\nquotas: {}\n":               `f:1:9: version is empty: want 1`,
	} {
		if _, err := Parse("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if _, refused, err := Inspect("f", []byte(text)); err == nil || err.Error() != want || refused != nil {
			t.Errorf("%q inspected: got %v, %v, want %s", text, refused, err, want)
		}
	}
}
