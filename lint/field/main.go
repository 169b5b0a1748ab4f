// Command field measures forbear lint on code that it was not made with: it
// runs the linter on the modules of corpus.tsv and counts how much of what two
// readers found there it reports, and how much of what it reports is true.
//
//	go run ./field -dir /tmp/field
//
// It downloads the modules, and what they need, by the go command; a run takes
// minutes when all is in the caches and an hour when nothing is.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// options are the command line.
type options struct {
	dir, src, corpus, half, only, linter, without string
	keep, list, ablate                            bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "forbear-field"), "where the reports are kept")
	flag.StringVar(&o.src, "src", "", "where the modules are copied (default: modules, below dir)")
	flag.StringVar(&o.corpus, "corpus", "field/corpus.tsv", "the labelled places")
	flag.StringVar(&o.half, "half", "", "open, shut, open-2, shut-2, third, fourth or fifth: that half or corpus only")
	flag.StringVar(&o.only, "only", "", "the modules with this in their path only")
	flag.StringVar(&o.linter, "linter", "", "the binary to run (default: this module's cmd/forbear-lint, built anew)")
	flag.BoolVar(&o.keep, "keep", false, "count the reports that are there, and run nothing")
	flag.StringVar(&o.without, "without", "", "the part of the linter that is off")
	flag.BoolVar(&o.ablate, "ablate", false, "count once more without each part, one line each; nothing that was never copied is downloaded")
	flag.BoolVar(&o.list, "list", false, "list what is missed, and what is false or not labelled")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "field:", err)
		os.Exit(1)
	}
}

// run judges the modules one after the other, and counts.
// A module that cannot be judged is named and left out of the figures.
func (o *options) run() error {
	sites, err := read(o.corpus)
	if err != nil {
		return err
	}
	byModule := map[string][]*site{}
	for _, s := range sites {
		if (o.half == "" || s.half == o.half) && strings.Contains(s.module, o.only) {
			byModule[s.module] = append(byModule[s.module], s)
		}
	}
	if len(byModule) == 0 {
		return errors.New("no module is of that half and name")
	}
	if err := o.prepare(); err != nil {
		return err
	}
	without = o.without
	if o.ablate {
		return o.ablated(byModule)
	}
	sites, found := o.all(byModule)
	score(os.Stdout, sites, found, o.list)
	return nil
}

// all judges the modules, and returns the places and the findings of those that could
// be judged.
func (o *options) all(byModule map[string][]*site) (sites []*site, found []finding) {
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		report := filepath.Join(o.dir, "reports", strings.ReplaceAll(module, "/", "_")+".json")
		if !o.keep {
			if err := o.judge(module, report, byModule[module]); err != nil {
				fmt.Fprintf(os.Stderr, "field: %s: %v\n", module, err)
			}
		}
		f, err := findings(report, module)
		if err != nil {
			fmt.Fprintf(os.Stderr, "field: %s is left out: %v\n", module, err)
			continue
		}
		found = append(found, f...)
		sites = append(sites, byModule[module]...)
	}
	return sites, found
}

// prepare makes the folder, and the linter unless one is given.
func (o *options) prepare() (err error) {
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	o.src = cmp.Or(o.src, filepath.Join(o.dir, "modules"))
	if err := os.MkdirAll(filepath.Join(o.dir, "reports"), 0o755); err != nil || o.keep || o.linter != "" {
		return err
	}
	o.linter = filepath.Join(o.dir, "forbear-lint")
	build := exec.Command("go", "build", "-tags", "ablate", "-o", o.linter, "./cmd/forbear-lint") // in the workspace
	build.Stderr = os.Stderr
	return build.Run()
}

// judge runs the linter on the packages of a module that hold a labelled place,
// in a copy of the module: some need a tidy go.mod, and all are read-only in the
// module cache.
func (o *options) judge(module, report string, sites []*site) error {
	src := filepath.Join(o.src, strings.ReplaceAll(module, "/", "_"))
	if _, err := os.Stat(src); err != nil {
		if err := fetch(module, src); err != nil {
			return err
		}
	}
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := []string{"-q", "-all", "-o", "json:" + report}
	for _, s := range sites {
		if p := "./" + filepath.ToSlash(filepath.Dir(s.file)); !slices.Contains(args, p) {
			args = append(args, p)
		}
	}
	err := command(src, o.linter, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 { // findings
		return nil
	}
	return err
}

// fetch copies a module out of the cache.
func fetch(module, src string) error {
	get := exec.Command("go", "mod", "download", "-json", module)
	get.Dir, get.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := get.Output()
	if err != nil {
		return fmt.Errorf("download: %w\n%s", err, out)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(src), 0o755); err != nil {
		return err
	}
	if err := command(".", "cp", "-r", got.Dir, src); err != nil {
		return err
	}
	if err := command(".", "chmod", "-R", "u+w", src); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(src, "go.mod")); err != nil {
		path, _, _ := strings.Cut(module, "@")
		return command(src, "go", "mod", "init", path)
	}
	return detach(src)
}

// detach leaves out of go.mod what replaces a module by a folder beside it, as
// the go command does for everybody who requires the module.
func detach(src string) error {
	edit := exec.Command("go", "mod", "edit", "-json")
	edit.Dir = src
	out, err := edit.Output()
	if err != nil {
		return fmt.Errorf("go mod edit: %w", err)
	}
	var mod struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return err
	}
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			continue
		}
		old := r.Old.Path
		if r.Old.Version != "" {
			old += "@" + r.Old.Version
		}
		if err := command(src, "go", "mod", "edit", "-dropreplace="+old); err != nil {
			return err
		}
	}
	return nil
}

// without is the part of the linter that is off.
var without string

// command runs a program to its end. Modules are judged by themselves, and may
// complete their go.sum.
func command(dir, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = dir, os.Stderr
	c.Env = append(os.Environ(), "FORBEAR_LINT_WITHOUT="+without, "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod -buildvcs=false")
	return c.Run()
}

// finding is what the linter reports of one place.
type finding struct {
	module     string
	ID         string
	Confidence string
	File       string
	Line       int
	Message    string
}

// findings reads a report. Without one the module could not be judged; of a
// report with faults, what it found counts.
func findings(report, module string) ([]finding, error) {
	src, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var r struct {
		Findings []finding
		Problems []struct {
			Message string
			Fatal   bool
		}
	}
	if err := json.Unmarshal(src, &r); err != nil {
		return nil, err
	}
	for _, p := range r.Problems {
		if p.Fatal && len(r.Findings) == 0 {
			return nil, errors.New(p.Message)
		}
	}
	for i := range r.Findings {
		r.Findings[i].module = module
	}
	slices.SortFunc(r.Findings, func(a, b finding) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return r.Findings, nil
}
