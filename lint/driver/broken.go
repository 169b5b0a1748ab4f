package driver

import (
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
)

// faults gathers what the go command says of packages that do not compile, each
// text once.
func faults(roots []*packages.Package) (list []string) {
	seen := map[string]bool{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		for _, text := range faultsOf(p) {
			if !seen[text] {
				seen[text] = true
				list = append(list, text)
			}
		}
	})
	return list
}

// faultsOf are the faults of one package in the words of the go command. The
// compiler's are one text, below the name of the package.
func faultsOf(p *packages.Package) (list []string) {
	for _, e := range p.Errors {
		// Files for another system are no fault of the code.
		if strings.Contains(e.Msg, "build constraints exclude all Go files") {
			continue
		}
		text := strings.TrimSpace(e.Msg)
		if e.Pos != "" && e.Pos != "-" {
			text = e.Pos + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// faultAt is how the go command and the compiler begin a fault.
var faultAt = regexp.MustCompile(`^(.+?):(\d+)(?::(\d+))?: (.+)$`)

// taken takes a text of faults apart, each with its place.
// What has no place belongs to the fault before it.
func (l *loaded) taken(faults string) (list []report.Problem) {
	for text := range strings.Lines(faults) {
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

// whole reports whether every expression has a type. In a package that imports
// one with faults, some may have none although there is no fault of its own.
func whole(info *types.Info) bool {
	for _, tv := range info.Types {
		if tv.Type == types.Typ[types.Invalid] && !tv.IsBuiltin() {
			return false
		}
	}
	return true
}
