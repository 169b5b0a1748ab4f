package site

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "draw docs/concepts/storm.svg anew")

// most is how large the simulator may be, in bytes.
const most = 5_000_000

// needs returns the path of a program. Where it is missing the test is skipped, or
// fails with CI=true.
func needs(t *testing.T, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%v: see .ci/deps", err)
	}
	if err != nil {
		t.Skip(err)
	}
	return file
}

// TestSimulator runs the page's simulator in Node.js, with the page's own script, and
// holds what it computes to `forbear sim run`. The picture in the document is what
// the page would draw.
func TestSimulator(t *testing.T) {
	file, err := os.Stat(filepath.Join(built, "sim/forbear.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if file.Size() > most {
		t.Errorf("the simulator has %d bytes, want %d at most", file.Size(), most)
	}
	node := exec.Command(needs(t, "node"), "simulator.js", built)
	node.Stderr = os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Scenario json.RawMessage
		Result   struct{ Summary map[string]any }
		Picture  string
	}
	if err := json.Unmarshal(out, &page); err != nil {
		t.Fatal(err)
	}

	forbear := exec.Command("go", "run", "./cmd/forbear", "sim", "run", "-", "-o", "json")
	forbear.Dir, forbear.Stdin = repository, bytes.NewReader(page.Scenario)
	for _, v := range os.Environ() {
		if v != "GOWORK=off" {
			forbear.Env = append(forbear.Env, v)
		}
	}
	out, err = forbear.Output() // exit code 1: the run ends in trouble, as it should
	var native struct{ Summary map[string]any }
	if bad := json.Unmarshal(out, &native); bad != nil {
		t.Fatalf("%v: %v", err, bad)
	}
	if verdict := native.Summary["verdict"]; verdict != "metastable" {
		t.Errorf("three retries at once end as %v, want metastable", verdict)
	}
	if !reflect.DeepEqual(page.Result.Summary, native.Summary) {
		t.Errorf("the page computes\n%v\nand forbear sim\n%v", page.Result.Summary, native.Summary)
	}

	picture := filepath.Join(repository, "docs/concepts/storm.svg")
	if *update {
		if err := os.WriteFile(picture, []byte(page.Picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if shown, err := os.ReadFile(picture); err != nil || string(shown) != page.Picture {
		t.Errorf("%s is not what the page draws (%v): run this test with -update", picture, err)
	}
}
