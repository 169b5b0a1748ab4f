package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// baselineEntry is one accepted finding. Only the fingerprint counts; the rest
// tells people what it is.
type baselineEntry struct {
	Fingerprint string `json:"fingerprint"`
	Rule        string `json:"rule"`
	Package     string `json:"package"`
	Function    string `json:"function,omitzero"`
	Message     string `json:"message"`
}

type baselineFile struct {
	Version  int             `json:"version"`
	Findings []baselineEntry `json:"findings"`
}

// writeBaselineFile writes the findings that stand, sorted, one field a line.
func writeBaselineFile(name string, found []*Finding) error {
	b := baselineFile{Version: 1, Findings: []baselineEntry{}}
	for _, f := range found {
		if f.Suppressed == "" {
			b.Findings = append(b.Findings, baselineEntry{f.Fingerprint, f.Rule, f.Package, f.Function, f.Message})
		}
	}
	slices.SortFunc(b.Findings, func(x, y baselineEntry) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Function, y.Function), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Fingerprint, y.Fingerprint))
	})
	out, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(out, '\n'), 0o644)
}

// readBaseline reads the fingerprints of a baseline, of our own form or SARIF;
// nil when there is none.
func readBaseline(name string) (map[string]bool, error) {
	if name == "" {
		return nil, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	var both struct {
		baselineFile
		Runs []struct {
			Results []struct {
				PartialFingerprints map[string]string `json:"partialFingerprints"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(src, &both); err != nil {
		return nil, fmt.Errorf("baseline %s: %w", name, err)
	}
	if both.Runs == nil && both.baselineFile.Version != 1 {
		return nil, fmt.Errorf("baseline %s: version %d is neither 1 nor a SARIF file", name, both.baselineFile.Version)
	}
	set := map[string]bool{}
	for _, e := range both.Findings {
		set[e.Fingerprint] = true
	}
	for _, run := range both.Runs {
		for _, res := range run.Results {
			if fp := res.PartialFingerprints[fingerprintKey]; fp != "" {
				set[fp] = true
			}
		}
	}
	return set, nil
}

// changedFiles returns the absolute names of the files that differ from a git
// revision, untracked ones included; nil when rev is empty.
func changedFiles(ctx context.Context, dir, rev string) (map[string]bool, error) {
	if rev == "" {
		return nil, nil
	}
	if strings.HasPrefix(rev, "-") {
		return nil, fmt.Errorf("revision %q is none", rev)
	}
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	top := strings.TrimSpace(string(root))
	diff, err := git(ctx, top, "diff", "--name-only", "-z", "--diff-filter=d", rev, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := git(ctx, top, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for name := range bytes.SplitSeq(append(diff, untracked...), []byte{0}) {
		if len(name) > 0 {
			set[filepath.Join(top, filepath.FromSlash(string(name)))] = true
		}
	}
	return set, nil
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
