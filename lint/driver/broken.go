package driver

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
)

// broken is the error for code that does not compile.
// Beside its text it keeps what a report needs: a pipeline that reads nothing but
// the report must not take it for that of clean code.
type broken struct {
	error
	loaded *loaded
}

// faultAt is how the go command and the compiler begin a fault.
var faultAt = regexp.MustCompile(`^(.+?):(\d+)(?::(\d+))?: (.+)$`)

// problems takes the faults apart, each with its place.
// The compiler's faults of a package come as one text, below the name of the
// package. What has no place belongs to the fault before it.
func (b *broken) problems() (list []report.Problem) {
	for text := range strings.Lines(b.Error()) {
		text = strings.TrimSpace(text)
		at := faultAt.FindStringSubmatch(text)
		switch {
		case text == "" || strings.HasPrefix(text, "# "):
		case at != nil:
			p := report.Problem{Kind: report.Faulty, File: at[1], Message: at[4], Fatal: true}
			if !filepath.IsAbs(p.File) {
				p.File = filepath.Join(b.loaded.dir, p.File)
			}
			p.File = b.loaded.rel(p.File)
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

// unjudged writes the reports that were asked for when the code does not compile,
// and returns err.
// Without -o nothing is written: standard error says it all.
func (o *options) unjudged(err error, stdout io.Writer) error {
	b, ok := errors.AsType[*broken](err)
	if !ok || len(o.outputs) == 0 {
		return err
	}
	rep := o.report(b.loaded, nil, nil, nil)
	rep.Problems = b.problems()
	return errors.Join(err, o.render(rep, b.loaded, stdout))
}
