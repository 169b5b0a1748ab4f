package driver

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
)

// applyFixes applies the first fix of every finding that has one, and returns how
// many it applied. Edits that overlap an applied one are left for the next run.
// Suppressed findings keep their code: the reason beside it says that it is meant.
//
// All files are made in memory first, so that one that cannot be fixed stops the
// run before any file has changed. A failure while the last ones are written leaves
// the earlier ones changed, which is safe: no fix spans two files.
func applyFixes(found []report.Finding, l *loaded) (applied int, err error) {
	byFile := map[string][]report.Edit{}
	for _, f := range found {
		if f.Suppressed != "" || len(f.Fixes) == 0 || !fits(byFile, f.Fixes[0].Edits) {
			continue
		}
		applied++
		for _, e := range f.Fixes[0].Edits {
			// Two findings in one file may both add the same import.
			if !slices.Contains(byFile[e.File], e) {
				byFile[e.File] = append(byFile[e.File], e)
			}
		}
	}
	rewritten := map[string][]byte{}
	for name, edits := range byFile {
		full := l.abs(name)
		src, err := os.ReadFile(full)
		if err != nil {
			return 0, fmt.Errorf("fix: %w", err)
		}
		if sum, _ := l.sums.Load(full); sum != sha256.Sum256(src) {
			return 0, fmt.Errorf("fix %s: the file has changed since it was judged: run it again", name)
		}
		if rewritten[full], err = rewrite(src, edits); err != nil {
			return 0, fmt.Errorf("fix %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rewritten)) {
		if err := report.ToFile(name, func(w io.Writer) error { _, err := w.Write(rewritten[name]); return err }); err != nil {
			return 0, fmt.Errorf("fix: %w", err)
		}
	}
	return applied, nil
}

// fits reports whether no edit overlaps one that was taken already; the same
// import twice is no overlap. Any other edit made twice is two: of two keys that
// are declared alike, each request needs its own.
// Two insertions at the same place overlap too, because their order would be
// open.
func fits(taken map[string][]report.Edit, edits []report.Edit) bool {
	for _, e := range edits {
		for _, o := range taken[e.File] {
			overlap := e.Start < o.End && o.Start < e.End || e.Start == o.Start && e.End == o.End
			if overlap && (e != o || !imports(e.NewText)) {
				return false
			}
		}
	}
	return true
}

// imports reports whether the text of an edit is imports and nothing else.
func imports(text string) (some bool) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "", line == "(", line == ")", line == "import (":
		case strings.HasSuffix(line, `"`) && !strings.ContainsAny(line, "=,("):
			some = true
		default:
			return false
		}
	}
	return some
}

// rewrite returns a file with the edits made. It is formatted where it was, so that
// nothing else of it changes, and new lines end as the others do. A result that does
// not parse is refused.
func rewrite(src []byte, edits []report.Edit) ([]byte, error) {
	slices.SortFunc(edits, func(a, b report.Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	lineEnd := "\n"
	if n := bytes.Count(src, []byte("\r\n")); n > 0 && n == bytes.Count(src, []byte("\n")) {
		lineEnd = "\r\n"
	}
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End > len(src) {
			return nil, fmt.Errorf("edit at byte %d does not fit the file", e.Start)
		}
		out.Write(src[at:e.Start])
		out.WriteString(strings.ReplaceAll(e.NewText, "\n", lineEnd))
		at = e.End
	}
	out.Write(src[at:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, err
	}
	if was, err := format.Source(src); err != nil || !bytes.Equal(was, src) {
		return out.Bytes(), nil
	}
	return formatted, nil
}
