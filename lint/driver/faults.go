package driver

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
)

// faultsBelow gathers what is wrong with packages and with what they import, each
// text once. The words of the go command count. Those of the type checker, which has
// many for one cause, are left out beside them and above another fault.
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

// taken takes a fault apart, each line with its place. What has no place belongs to
// the line before it.
func (l *loaded) taken(e packages.Error) (list []report.Problem) {
	text := e.Msg
	if e.Pos != "" && e.Pos != "-" {
		text = e.Pos + ": " + strings.TrimSpace(e.Msg)
	}
	for text := range strings.Lines(text) {
		text = strings.TrimSpace(text)
		at := faultAt.FindStringSubmatch(text)
		switch {
		case text == "" || strings.HasPrefix(text, "# "): // the name of the package
		case at != nil:
			line, _ := strconv.Atoi(at[2])
			column, _ := strconv.Atoi(at[3])
			list = append(list, report.Problem{Kind: report.Faulty, File: l.rel(l.abs(at[1])), Line: line, Column: column, Message: at[4], Fatal: true})
		case len(list) > 0:
			list[len(list)-1].Message += " " + text
		default:
			list = append(list, report.Problem{Kind: report.Faulty, Message: text, Fatal: true})
		}
	}
	return list
}

// complain writes what was wrong with the code, and what that cost.
func (v *verdict) complain(stderr io.Writer) {
	for _, p := range v.problems {
		switch {
		case p.Kind == report.Unjudged:
			fmt.Fprintln(stderr, "forbear lint: not judged:", p.Message)
		case p.File == "":
			fmt.Fprintln(stderr, p.Message)
		default:
			fmt.Fprintf(stderr, "%s: %s\n", p.Place(), p.Message)
		}
	}
}

// because says which packages do not compile. One cause has many effects, and people
// are shown some.
func because(paths []string) string {
	const most = 20
	what, more := "packages, which do not compile or import one that does not", ""
	if len(paths) == 1 {
		what = "package, which does not compile or imports one that does not"
	}
	if len(paths) > most {
		more = fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return fmt.Sprintf("%d %s: %s%s", len(paths), what, strings.Join(paths[:min(len(paths), most)], ", "), more)
}
