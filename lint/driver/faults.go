package driver

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
)

// faultsBelow gathers what is wrong with packages and with what they import, each
// text once. The words of the go command come first. Those of the type checker, which
// has many for one cause, are left out beside them and above another fault.
func (l *loaded) faultsBelow(all []*packages.Package) (list []report.Problem) {
	faulty := map[*packages.Package]bool{}
	packages.Visit(all, nil, func(p *packages.Package) {
		said := slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ListError })
		for _, dep := range p.Imports {
			said = said || faulty[dep]
		}
		faulty[p] = said || len(p.Errors) > 0
		for _, e := range p.Errors {
			// Files for another system are no fault of the code.
			if said && e.Kind != packages.ListError || strings.Contains(e.Msg, "build constraints exclude all Go files") {
				continue
			}
			for _, f := range l.taken(e) {
				if !slices.Contains(list, f) {
					list = append(list, f)
				}
			}
		}
	})
	return list
}

// faultAt is how the go command and the compiler begin a fault.
var faultAt = regexp.MustCompile(`^(.+?):(\d+)(?::(\d+))?: (.+)$`)

// taken takes a fault apart, each line with its place. What has no place belongs
// to the fault before it.
func (l *loaded) taken(e packages.Error) (list []report.Problem) {
	text := e.Msg
	if e.Pos != "" && e.Pos != "-" {
		text = e.Pos + ": " + strings.TrimSpace(e.Msg)
	}
	for text := range strings.Lines(text) {
		text = strings.TrimSpace(text)
		at := faultAt.FindStringSubmatch(text)
		switch {
		case text == "" || strings.HasPrefix(text, "# "):
		case at != nil:
			p := report.Problem{Kind: report.Faulty, File: at[1], Message: at[4], Fatal: true}
			if !filepath.IsAbs(p.File) {
				p.File = filepath.Join(l.dir, p.File)
			}
			p.File = l.rel(p.File)
			p.Line, _ = strconv.Atoi(at[2])
			p.Column, _ = strconv.Atoi(at[3])
			list = append(list, p)
		case len(list) > 0:
			list[len(list)-1].Message += " " + text
		default:
			list = append(list, report.Problem{Kind: report.Faulty, Message: text, Fatal: true})
		}
	}
	return list
}

// complete reports whether everything was judged, and compiles.
func (v *verdict) complete() bool {
	return len(v.faults) == 0 && len(v.broken()) == 0 && len(v.errs) == 0
}

// broken are the paths of the packages that were asked for and do not compile, or
// need one that does not. A package without files or faults was not to be judged.
func (v *verdict) broken() (paths []string) {
	for _, p := range v.roots {
		if !slices.Contains(v.judged, p) && (len(p.Syntax) > 0 || len(v.faultsBelow([]*packages.Package{p})) > 0) {
			paths = append(paths, p.PkgPath)
		}
	}
	slices.Sort(paths)
	return paths
}

// notJudged are the paths of all packages that were asked for and not judged,
// those among them on which an analyzer failed.
func (v *verdict) notJudged() []string {
	paths := v.broken()
	for _, p := range v.roots {
		if v.errs[p.PkgPath] != nil {
			paths = append(paths, p.PkgPath)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// problems are what a report says of it: the faults with their places, and what
// was not judged. A pipeline that reads nothing but the report must not take it
// for that of clean code.
func (v *verdict) problems() []report.Problem {
	list := slices.Clone(v.faults)
	if paths := v.broken(); len(paths) > 0 {
		list = append(list, report.Problem{Kind: report.Unjudged, Message: because(paths), Fatal: true})
	}
	for _, path := range slices.Sorted(maps.Keys(v.errs)) {
		first, _, _ := strings.Cut(v.errs[path].Error(), "\n") // a panic has its stack behind it
		list = append(list, report.Problem{Kind: report.Unjudged, Message: first, Fatal: true})
	}
	return list
}

// mostShown bounds what people are shown of what is wrong: one cause has many
// effects.
const mostShown = 20

// complain writes what was wrong with the code, and what that cost.
func (v *verdict) complain(stderr io.Writer) {
	for _, f := range v.faults {
		if f.File == "" {
			fmt.Fprintln(stderr, f.Message)
			continue
		}
		fmt.Fprintf(stderr, "%s: %s\n", f.Place(), f.Message)
	}
	if paths := v.broken(); len(paths) > 0 {
		fmt.Fprintln(stderr, "forbear lint: not judged:", because(paths))
	}
	failed := slices.Sorted(maps.Keys(v.errs))
	for _, path := range failed[:min(len(failed), mostShown)] {
		fmt.Fprintln(stderr, "forbear lint: not judged:", v.errs[path])
	}
	if more := len(failed) - mostShown; more > 0 {
		fmt.Fprintf(stderr, "forbear lint: not judged: %s more\n", plural(more, "package"))
	}
}

// because says how many packages were not judged, and which.
func because(paths []string) string {
	text := "1 package, which does not compile or needs one that does not: "
	if n := len(paths); n > 1 {
		text = fmt.Sprintf("%d packages, which do not compile or need one that does not: ", n)
	}
	if len(paths) > mostShown {
		return text + strings.Join(paths[:mostShown], ", ") + fmt.Sprintf(" and %d more", len(paths)-mostShown)
	}
	return text + strings.Join(paths, ", ")
}
