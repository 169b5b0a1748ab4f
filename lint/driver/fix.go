package driver

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
)

// applyFixes applies the first fix of every finding that has one, and returns
// the indices of those that it mended. Edits that overlap an applied one are left for the
// next run. abs makes the files' names absolute. Nothing is written unless all
// files can be.
// Suppressed findings keep their code: the reason beside it says that it is
// meant. A failure while the last files are written leaves the earlier ones
// changed, which is safe: no fix of ours spans two files, and each file is
// replaced as a whole. sum is that of a file as it was judged.
func applyFixes(found []report.Finding, abs, sum func(string) string) (map[int]bool, error) {
	byFile := map[string][]report.Edit{}
	applied := map[int]bool{}
	for i, f := range found {
		if f.Suppressed != "" || len(f.Fixes) == 0 || !fits(byFile, f.Fixes[0].Edits) {
			continue
		}
		applied[i] = true
		for _, e := range f.Fixes[0].Edits {
			// Two findings in one file may both add the same import.
			if !slices.Contains(byFile[e.File], e) {
				byFile[e.File] = append(byFile[e.File], e)
			}
		}
	}
	// All files are made in memory first, so that one that cannot be mended stops
	// the run before any file has changed.
	rewritten := map[string][]byte{}
	for name, edits := range byFile {
		src, err := rewrite(abs(name), sum(abs(name)), edits)
		if err != nil {
			return nil, err
		}
		rewritten[abs(name)] = src
	}
	for _, name := range slices.Sorted(maps.Keys(rewritten)) {
		write := func(w io.Writer) error {
			_, err := w.Write(rewritten[name])
			return err
		}
		if err := toFile(name, write); err != nil {
			return nil, fmt.Errorf("fix: %w", err)
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
// nothing else of it changes; line ends stay as they are.
// Offsets are bytes of the file as it was judged: one that has changed since then
// is refused. So is a result that does not parse.
func rewrite(name, sum string, edits []report.Edit) ([]byte, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("fix: %w", err)
	}
	if sumOf(src) != sum {
		return nil, fmt.Errorf("fix %s: the file has changed since it was judged: run it again", name)
	}
	slices.SortFunc(edits, func(a, b report.Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End > len(src) {
			return nil, fmt.Errorf("fix %s: edit at byte %d does not fit the file", name, e.Start)
		}
		out.Write(src[at:e.Start])
		out.WriteString(e.NewText)
		at = e.End
	}
	out.Write(src[at:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("fix %s: %w", name, err)
	}
	pairs, lines := bytes.Count(src, []byte("\r\n")), bytes.Count(src, []byte("\n"))
	before := bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	was, err := format.Source(before)
	switch {
	case pairs > 0 && pairs < lines, err != nil:
		return out.Bytes(), nil
	case !bytes.Equal(was, before):
		formatted = bytes.ReplaceAll(out.Bytes(), []byte("\r\n"), []byte("\n"))
	}
	if pairs > 0 {
		formatted = bytes.ReplaceAll(formatted, []byte("\n"), []byte("\r\n"))
	}
	return formatted, nil
}
