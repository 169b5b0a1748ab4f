package policyfile

import (
	"slices"
	"strings"
	"testing"
)

const paced = `
dependencies:
  payments: {pace: off}
  search: {pace: on}
  ledger: {}
`

// TestPace reads the switch; what is written reads back, and a change is shown.
func TestPace(t *testing.T) {
	f := must(t, paced)
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again := must(t, string(data))
	for name, want := range map[string]Pace{"payments": PaceOff, "search": PaceOn, "ledger": PaceOn} {
		if d, _ := f.Dependency(name); d.Pace != want {
			t.Errorf("%s: got %v, want %v", name, d.Pace, want)
		}
		if d, _ := again.Dependency(name); d.Pace != want {
			t.Errorf("%s: read back %v, want %v, from\n%s", name, d.Pace, want, data)
		}
	}
	changes := Diff(must(t, paced), must(t, strings.Replace(paced, "off", "on", 1)))
	if len(changes) != 1 || changes[0].Text != "payments: pace is now the default, it was off" {
		t.Errorf("changes %+v", changes)
	}
}

func TestPaceFaults(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"word", "dependencies: {a: {pace: false}}", `f:1:26: pace is "false": want on or off`},
		{"no", "dependencies: {a: {pace: no}}", `f:1:26: pace is "no": want on or off`},
		{"list", "dependencies: {a: {pace: [off]}}", "f:1:26: pace is a list: want on or off"},
		{"slip", "dependencies: {a: {paced: off}}", `f:1:20: unknown key "paced" in dependency a: did you mean pace?`},
		{"profile", "profiles: {p: {pace: off}}", `f:1:16: unknown key "pace" in profile p`},
		{"consumer", "consumers: {a: {pace: off}}", "f:1:23: a of section consumers has pace, which only dependencies may have"},
		{"webhook", "webhooks: {a: {pace: on}}", "f:1:22: a of section webhooks has pace, which only dependencies may have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.text)); err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
