// Package recall_test measures which share of the defects in a corpus forbear
// lint finds. The corpus was written before the analyzers were looked at, in
// the styles in which engineers write retries; lint/FIELD.md holds the figures.
//
//forbear:plain rules have no goroutines; package lint runs them at once
package recall_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/lint/driver"
)

// A defect is one that the corpus names, or that forbear lint found: a rule in
// a case. A case is a stretch of a file from a comment "case NAME: RULES" to
// the next.
type defect struct{ pkg, name, rule string }

// corpus is what forbear lint says of the packages in testdata.
type corpus struct {
	want  []defect
	found map[defect]string // the highest confidence
	stray []string          // findings outside of all cases
}

// measured are the rules whose recall has a floor; those of one group are
// counted together.
var measured = map[string]string{
	"FB1001": "FB1001 and FB1002", "FB1002": "FB1001 and FB1002",
	"FB1030": "FB1030", "FB1035": "FB1035",
}

// analyzed runs forbear lint over the corpus, once for all tests.
var analyzed = sync.OnceValues(func() (*corpus, error) {
	gopath, err := filepath.Abs("testdata")
	if err != nil {
		return nil, err
	}
	// The corpus imports stand-ins with the signatures of retry libraries,
	// which the go command finds by GOPATH.
	for name, value := range map[string]string{"GO111MODULE": "off", "GOPATH": gopath, "GOFLAGS": ""} {
		old, set := os.LookupEnv(name)
		os.Setenv(name, value)
		if set {
			defer os.Setenv(name, old)
		} else {
			defer os.Unsetenv(name)
		}
	}
	c := &corpus{found: make(map[defect]string)}
	var out, diag bytes.Buffer
	packages := []string{"posts", "status", "waits", "clean"}
	code := driver.Main(context.Background(), nil, append([]string{"-q", "--all", "-o", "json"}, packages...), &out, &diag)
	if code == driver.ExitUnjudged {
		return nil, &unjudged{diag.String()}
	}
	var report struct {
		Findings []struct {
			ID, Confidence, Package, File string
			Line                          int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, err
	}
	cases := make(map[string][]string) // file -> the case of each line
	for _, pkg := range packages {
		if err := c.read(pkg, cases); err != nil {
			return nil, err
		}
	}
	for _, f := range report.Findings {
		file := filepath.Base(filepath.Dir(f.File)) + "/" + filepath.Base(f.File)
		lines := cases[file]
		if measured[f.ID] == "" {
			continue
		}
		if f.Line > len(lines) || lines[f.Line-1] == "" {
			c.stray = append(c.stray, f.ID+" at "+file)
			continue
		}
		d := defect{f.Package, lines[f.Line-1], f.ID}
		if rank(f.Confidence) > rank(c.found[d]) {
			c.found[d] = f.Confidence
		}
	}
	return c, nil
})

type unjudged struct{ why string }

func (u *unjudged) Error() string { return u.why }

func rank(confidence string) int {
	return slices.Index([]string{"", "low", "medium", "high"}, confidence)
}

// read gathers the cases of a package, and which line belongs to which.
func (c *corpus) read(pkg string, cases map[string][]string) error {
	files, err := filepath.Glob(filepath.Join("testdata", "src", pkg, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		key, name := pkg+"/"+filepath.Base(file), ""
		for lines := bufio.NewScanner(bytes.NewReader(src)); lines.Scan(); {
			if head, ok := strings.CutPrefix(lines.Text(), "// case "); ok {
				var rules string
				name, rules, _ = strings.Cut(head, ": ")
				for id := range strings.FieldsSeq(rules) {
					c.want = append(c.want, defect{pkg, name, id})
				}
			}
			cases[key] = append(cases[key], name)
		}
	}
	return nil
}

// TestRecall holds the share of the corpus's defects that forbear lint shows
// by default, as errors or warnings.
func TestRecall(t *testing.T) {
	c, err := analyzed()
	if err != nil {
		t.Fatal(err)
	}
	type count struct{ all, shown, high int }
	counts := make(map[string]*count)
	for _, d := range c.want {
		if d.rule == "none" {
			continue
		}
		group := measured[d.rule]
		if counts[group] == nil {
			counts[group] = new(count)
		}
		n := counts[group]
		n.all++
		switch c.found[d] {
		case "high":
			n.high++
			n.shown++
		case "medium":
			n.shown++
		default:
			t.Logf("missed: %s in %s: %s", d.rule, d.pkg, d.name)
		}
	}
	for group, least := range map[string]float64{"FB1001 and FB1002": 0.83, "FB1030": 0.81, "FB1035": 0.77} {
		n := counts[group]
		if n == nil || n.all < 20 {
			t.Errorf("%s: the corpus has too few cases", group)
			continue
		}
		share := float64(n.shown) / float64(n.all)
		t.Logf("%s: %d of %d reported (%.2f), %d with high confidence", group, n.shown, n.all, share, n.high)
		if share < least {
			t.Errorf("%s: recall %.2f, want at least %.2f", group, share, least)
		}
	}
}

// TestNothingElse holds that what is reported with high confidence is a defect
// that the corpus names, and that correct loops are not even warned of.
func TestNothingElse(t *testing.T) {
	c, err := analyzed()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.stray {
		t.Errorf("outside of all cases: %s", s)
	}
	for d, confidence := range c.found {
		least := "high"
		if d.pkg == "clean" {
			least = "medium"
		}
		if rank(confidence) >= rank(least) && !slices.Contains(c.want, d) {
			t.Errorf("%s: %s: unexpected %s with confidence %s", d.pkg, d.name, d.rule, confidence)
		}
	}
}
