//go:build unix

package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const document = `# A guide

Write this:

` + "```yaml" + `
# policy.yaml
service: a
` + "```" + `

` + "```console" + `
$ export WORD=kept
$ cat policy.yaml | grep service
service: a
$ echo $WORD \
> twice; seq 3
kept twice
1
...
$ false || echo went on; exit 3
went …
` + "```" + `

<!-- keeps running -->
` + "```console" + `
$ echo ready; while [ ! -e file ]; do sleep 0.01; done; echo "seen [$WORD]"; sleep 60
ready
# in another terminal:
$ echo "[$WORD]" | tee file
[]
` + "```" + `

` + "```console" + `
seen [kept]
` + "```" + `

<!-- not run: needs a cluster -->
` + "```console" + `
$ exit 1
` + "```" + `

<!-- in the clone -->
` + "```console" + `
$ basename "$PWD"
clone
` + "```" + `
`

func TestRun(t *testing.T) {
	blocks, err := Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 7 || blocks[0].File != "policy.yaml" || len(blocks[1].Steps) != 4 || blocks[5].NotRun != "needs a cluster" {
		t.Fatalf("got %+v", blocks)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	if err := os.Mkdir(clone, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Session{Dir: t.TempDir(), Clone: clone, Env: os.Environ()}
	s.Run(t, "guide.md", blocks)
}

// What a document shows and a command does not print is found.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		all, some bool
	}{
		{"a\nb", "a\nb\n", true, true},
		{"a\nb", "a\nc\nb\n", false, true},
		{"a\n...\nb", "a\nc\nd\nb\n", true, true},
		{"a\n...", "a\n", true, true},
		{"...\nb", "a\nc\n", false, false},
		{"b\na", "a\nb\n", false, false},
		{"took … ms (all)", "took 12 ms (all)", true, true},
		{"took … ms (all)", "took 12 s (all)", false, false},
		{"a", "a  \n", true, true},
		{"a", "", false, false},
		{"a", "a\nb", false, true},
	} {
		if err := Match(strings.Split(tt.want, "\n"), tt.got); (err == nil) != tt.all {
			t.Errorf("Match %q in %q: %v", tt.want, tt.got, err)
		}
		if _, err := Contains(strings.Split(tt.want, "\n"), tt.got); (err == nil) != tt.some {
			t.Errorf("Contains %q in %q: %v", tt.want, tt.got, err)
		}
	}
}

// A command that fails, or prints something else, stops the document.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		command string
		output  []string
		want    string // of the error
	}{
		{"exit 2", nil, "exit status 2"},
		{"echo a; exit 2", []string{"a"}, ""},
		{"echo b", []string{"a"}, `no line is "a"`},
		{"echo out; echo err >&2", []string{"out", "err"}, ""},
	} {
		s := Session{Dir: t.TempDir(), Env: os.Environ()}
		err := s.step(t, Step{Command: tt.command, Output: tt.output}, false, false)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.command, err, tt.want)
		}
	}
	s := Session{Dir: t.TempDir(), Env: os.Environ()}
	if err := s.step(t, Step{Command: "echo ready; exit 1", Output: []string{"other"}}, false, true); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("a server that ends: %v", err)
	}
}

// What a terminal has shown is not shown again, and nothing is left behind.
func TestShownOnce(t *testing.T) {
	s := Session{Dir: t.TempDir(), Env: os.Environ()}
	if err := s.step(t, Step{Command: "echo ready; echo one; while [ ! -e more ]; do sleep 0.01; done; echo two; sleep 60", Output: []string{"ready"}}, false, true); err != nil {
		t.Fatal(err)
	}
	if err := s.shows([]string{"one"}); err != nil {
		t.Error(err)
	}
	if _, err := Contains([]string{"one"}, s.terms[0].unseen()); err == nil {
		t.Error("a line counts twice")
	}
	if err := s.step(t, Step{Command: "sleep 60 >/dev/null 2>&1 & echo $! >more", Output: nil}, false, false); err != nil {
		t.Fatal(err)
	}
	if err := s.shows([]string{"two"}); err != nil {
		t.Error(err)
	}
	s.end()
	pid, err := os.ReadFile(filepath.Join(s.Dir, "more"))
	if err != nil {
		t.Fatal(err)
	}
	state := ""
	for range 200 { // a signal that is sent has not arrived yet
		b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if state = string(b); err != nil || strings.Contains(state, ") Z ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("a process is left: %s", state)
}

// A mistake in a document is named with its line.
func TestParseErrors(t *testing.T) {
	for want, text := range map[string]string{
		"line 1: the fence has no end":                  "```yaml\na\n",
		"line 2: a comment that means nothing: run it":  "<!-- run it -->\n```console\n$ a\n```\n",
		"line 2: output comes before the first command": "```console\na\n$ b\n```\n",
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
