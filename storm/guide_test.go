package storm

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

var update = flag.Bool("update", false, "rewrite the picture of the guide")

// What the guide shows is what the simulator says.
func TestGuideShowsWhatTheSimulatorSays(t *testing.T) {
	const guide, picture = "../docs/guides/simulator.md", "../docs/guides/simulator-partial.svg"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []forbear.Policy{{}, withBreaker(breaker.Policy{OnBudget: breaker.BudgetOpens})} {
		var b bytes.Buffer
		if err := mustRun(t, partial(p, 0.3)).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(b.String(), "latency of good calls")
		if !bytes.Contains(text, []byte(head)) {
			t.Errorf("%s lacks:\n%s", guide, head)
		}
	}
	s, _ := FindNamed("partial")
	c, err := RunCurve(t.Context(), s, 20, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(picture, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(picture); err != nil || !bytes.Equal(drawn, b.Bytes()) {
		t.Errorf("%s is not that of the simulator: run the test with -update (%v)", picture, err)
	}
}
