package storm

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the picture of the guide")

// The guide's picture is the simulator's; its commands are run with the other guides.
func TestGuidesPicture(t *testing.T) {
	const picture = "../docs/guides/simulator-partial.svg"
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
