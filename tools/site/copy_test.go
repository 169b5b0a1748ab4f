package site

import (
	"os"
	"os/exec"
	"testing"
)

// TestCopy holds the button that copies code to what a reader would type, by the page's own
// script: a command that goes on in the next line is copied whole.
func TestCopy(t *testing.T) {
	node := needs(t, "node")
	for text, want := range map[string]string{
		"make site\n":                "make site\n",
		"$ one\nits output\n$ two\n": "one\ntwo",
		"$ one \\\n    --more \\\n    --still\noutput\n": "one \\\n    --more \\\n    --still",
		"helm install \\\n  --set a=b\n":                 "helm install \\\n  --set a=b\n",
	} {
		command := exec.Command(node, "-e", `process.stdout.write(require("../../site/assets/copy.js").typed(process.argv[1]))`, text)
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != want {
			t.Errorf("of %q %q is copied, want %q", text, out, want)
		}
	}
}
