package guides

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/transcript"
	"github.com/forbear-go/forbear/policyfile"
)

// policyKey is a line that only a policy file has.
var policyKey = regexp.MustCompile(`(?m)^(service: \w|dependencies|consumers|webhooks):?`)

// TestPoliciesOfGuidesPass: a part of a policy that a guide shows can be read, and forbear
// check passes a whole one, which names its service.
func TestPoliciesOfGuidesPass(t *testing.T) {
	guides, err := filepath.Glob("../../../../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for _, guide := range append(guides, "../../../../../README.md") {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := transcript.Parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", guide, err)
		}
		for _, b := range blocks {
			if b.File != "" && !strings.Contains(b.File, "policy") || b.Language != "yaml" || !policyKey.MatchString(b.Text) || b.NotRun != "" {
				continue
			}
			policies++
			if !strings.Contains(b.Text, "\nservice: ") && !strings.HasPrefix(b.Text, "service: ") {
				if _, err := policyfile.Parse("policy.yaml", []byte(b.Text)); err != nil {
					t.Errorf("%s:%d: %v", guide, b.Line, err)
				}
				continue
			}
			file := clitest.File(t, "policy.yaml", b.Text)
			if r := clitest.Run(t, check.Command(), "", file); r.Code != cli.ExitOK {
				t.Errorf("%s:%d: check ends with %d:\n%s%s", guide, b.Line, r.Code, r.Out, r.Errors)
			}
		}
	}
	if policies < 10 {
		t.Errorf("only %d policies were found", policies)
	}
}
