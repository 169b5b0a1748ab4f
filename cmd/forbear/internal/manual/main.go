// Command manual writes the manual pages of forbear into a folder, for packages: they
// say what --help says.
//
//	go run ./cmd/forbear/internal/manual -version v1.2.3 DIR
package main

import (
	"flag"
	"io"
	"log"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
)

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "the `version` of forbear")
	flag.Parse()
	if err := write(flag.Arg(0), strings.TrimSpace("forbear "+*version)); err != nil {
		log.Fatalf("manual: %v", err)
	}
}

// write writes the page of the program and that of each command. Their date is that
// of SOURCE_DATE_EPOCH, or else today.
func write(dir, source string) error {
	root := commands.Program().Cobra(&cli.Streams{Out: io.Discard, Err: io.Discard}, true)
	root.DisableAutoGenTag = true
	for _, c := range append(root.Commands(), root) {
		c.Long = markdown(c.Long) + exitCodes
	}
	return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
		Header: &doc.GenManHeader{Section: "1", Source: source, Manual: "forbear manual"}, Path: dir, CommandSeparator: "-",
	})
}

const exitCodes = `

# EXIT STATUS

0: pass; 1: findings, or a negative answer; 2: could not judge, such as bad usage or
unreadable input.
`

// markdown keeps the text of a help from being read as anything but text: what is
// indented is code, and the rest has no markup.
func markdown(help string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(help) {
		indented := strings.HasPrefix(line, "  ")
		if indented != code && strings.TrimSpace(line) != "" {
			b.WriteString("\n")
			code = indented
		}
		if indented {
			b.WriteString("  " + line)
		} else {
			b.WriteString(markup.Replace(line))
		}
	}
	return b.String()
}

var markup = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "[", `\[`, "|", `\|`)
