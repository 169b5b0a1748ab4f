package cut

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// writeNotes writes what a reader of the release is told: how to get it, and what the
// changelog says.
func (c *candidate) writeNotes() error {
	var b strings.Builder
	fmt.Fprintf(&b, "# forbear %s\n\n", strings.TrimPrefix(c.version, "v"))
	fmt.Fprintf(&b, "    go install %s/cmd/forbear@%s\n    go get %s@%s\n\n", workspace.Prefix, c.version, workspace.Prefix, c.version)
	if more := c.paths(); len(more) > 0 {
		fmt.Fprintf(&b, "Modules of the same version, for what needs a dependency: %s.\n\n", strings.Join(more, ", "))
	}
	b.WriteString(fromAnywhere(c.section, c.version))
	list(&b, "May break what uses "+c.last, c.changes.Breaking)
	list(&b, "Changed in experimental packages since "+c.last, c.changes.Experimental)
	name := filepath.Join(c.root, "bin", "release", "notes.md")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	c.say("notes: bin/release/notes.md")
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

// relative matches the end of a link to a file of the repository.
var relative = regexp.MustCompile(`\]\(([A-Za-z][^):]*)\)`)

// fromAnywhere makes links of the changelog lead to the files of the version from where
// notes are read: a page of releases has no such files beside it.
func fromAnywhere(section, version string) string {
	return relative.ReplaceAllString(section, "](https://"+workspace.Prefix+"/blob/"+version+"/$1)")
}

func (c *candidate) paths() []string {
	var paths []string
	for _, m := range c.w.Released() {
		if m.Dir != "." && m.Dir != "cmd/forbear" {
			paths = append(paths, "`"+m.Path+"`")
		}
	}
	return paths
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "- `%s`\n", line)
	}
}
