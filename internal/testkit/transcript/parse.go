// Package transcript runs the commands of a document as they are printed, and compares
// what they print with what the document shows.
//
// A terminal is a fence of the language console. Its lines that begin with "$ " are
// commands; the lines below are their output, in which a line of "..." stands for any
// lines and "…" for any text. The commands run in bash, in a new folder. A command that
// keeps running has its terminal to itself: the next block is another one, in the same
// folder and without the variables of the first, and so is what follows a line that begins
// with "# in a". A block without commands is what an earlier terminal shows by now.
//
// Any other block whose first line is a comment with the name of a file is written to that
// file. A comment of HTML above a block may say otherwise:
//
//	<!-- not run: REASON -->    it needs what a test cannot have
//	<!-- run by TestName -->    another test runs it
//	<!-- keeps running -->      as forbear serve does
//	<!-- in the clone -->       the terminal is in the repository
package transcript

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fence of a document.
type Block struct {
	Line     int    // of its first line in the document
	Language string // "console", "yaml", ...
	Text     string
	File     string   // that the text is, or ""
	Steps    []Step   // of a terminal
	Shown    []string // what an earlier terminal shows: a console without commands

	NotRun, RunBy         string // what the comment above says
	KeepsRunning, InClone bool
}

// Step is one command of a terminal.
type Step struct {
	Line    int
	Command string
	Output  []string // nil: any
}

var (
	comment  = regexp.MustCompile(`^<!-- (.*) -->$`)
	fileName = regexp.MustCompile(`^(?:#|//|--) ([\w.-][\w./-]*\.\w+)$`)
	held     = regexp.MustCompile(`^run by ((?:Test|Example|Fuzz)\w+)$`)
)

// Parse returns the fences of a document, in their order.
func Parse(document string) ([]Block, error) {
	var blocks []Block
	var b *Block
	var above []string // comments directly above
	for i, line := range strings.Split(document, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case b == nil && isFence:
			b = &Block{Line: i + 2, Language: fence}
			for _, said := range above {
				if err := b.say(said); err != nil {
					return nil, fmt.Errorf("line %d: %w", i+1, err)
				}
			}
			above = nil
		case b == nil:
			if m := comment.FindStringSubmatch(line); m != nil {
				above = append(above, m[1])
			} else if line != "" {
				above = nil
			}
		case line == "```":
			for _, part := range b.terminals() {
				if err := part.close(); err != nil {
					return nil, fmt.Errorf("line %d: %w", part.Line, err)
				}
				blocks = append(blocks, part)
			}
			b = nil
		default:
			b.Text += line + "\n"
		}
	}
	if b != nil {
		return nil, fmt.Errorf("line %d: the fence has no end", b.Line-1)
	}
	return blocks, nil
}

// say reads what a comment above the block says.
func (b *Block) say(said string) error {
	switch reason, isNot := strings.CutPrefix(said, "not run: "); {
	case isNot:
		b.NotRun = reason
	case held.MatchString(said):
		b.RunBy = held.FindStringSubmatch(said)[1]
	case said == "keeps running":
		b.KeepsRunning = true
	case said == "in the clone":
		b.InClone = true
	default:
		return fmt.Errorf("a comment that means nothing: %s", said)
	}
	return nil
}

// another is the comment at which a block goes on in another terminal.
var another = regexp.MustCompile(`(?m)^# in a\w* .*\n`)

// terminals returns the blocks that a fence is.
func (b *Block) terminals() (parts []Block) {
	if b.Language != "console" {
		return []Block{*b}
	}
	text, line := b.Text, b.Line
	for {
		part := *b
		part.Line = line
		at := another.FindStringIndex(text)
		if at == nil {
			part.Text = text
			return append(parts, part)
		}
		part.Text = text[:at[0]]
		parts = append(parts, part)
		line += strings.Count(text[:at[1]], "\n")
		text = text[at[1]:]
	}
}

// close reads the whole text.
func (b *Block) close() error {
	first, _, _ := strings.Cut(b.Text, "\n")
	if b.Language != "console" {
		if m := fileName.FindStringSubmatch(first); m != nil {
			b.File = m[1]
		}
		return nil
	}
	continued := false
	for i, line := range strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case continued:
			b.Steps[len(b.Steps)-1].Command += "\n" + strings.TrimPrefix(line, "> ")
			continued = strings.HasSuffix(line, `\`)
		case isCommand:
			b.Steps = append(b.Steps, Step{Line: b.Line + i, Command: command})
			continued = strings.HasSuffix(command, `\`)
		case len(b.Steps) == 0:
			b.Shown = append(b.Shown, line)
		default:
			s := &b.Steps[len(b.Steps)-1]
			s.Output = append(s.Output, line)
		}
	}
	if len(b.Steps) > 0 && len(b.Shown) > 0 {
		return fmt.Errorf("output comes before the first command")
	}
	return nil
}
