package man

import (
	"regexp"
	"strings"
)

// roff is a page in the language of man(7), which groff and mandoc both read.
type roff struct{ b strings.Builder }

func (r *roff) String() string { return r.b.String() }

// line writes a line as it is.
func (r *roff) line(s string) { r.b.WriteString(s + "\n") }

func (r *roff) section(title string) { r.line(".SH " + title) }

// tagged writes a paragraph under a tag, which is roff already.
func (r *roff) tagged(tag, about string) {
	r.line(".TP")
	r.line(tag)
	r.prose(about)
}

// paragraphs writes the words of --help: paragraphs with an empty line between
// them, and indented lines, which stay as they are.
func (r *roff) paragraphs(about string) {
	for i, block := range blocks(about) {
		if i > 0 {
			r.line(".PP")
		}
		if strings.HasPrefix(block[0], "  ") {
			r.verbatim(block)
		} else {
			r.prose(strings.Join(block, " "))
		}
	}
}

// blocks cuts a text at its empty lines, and where an indentation begins or ends.
func blocks(about string) (found [][]string) {
	indented, open := false, false
	for line := range strings.SplitSeq(strings.Trim(about, "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			open = false
			continue
		}
		if in := strings.HasPrefix(line, "  "); !open || in != indented {
			found, indented, open = append(found, nil), in, true
		}
		found[len(found)-1] = append(found[len(found)-1], line)
	}
	return found
}

// verbatim writes lines that are filled by no one.
func (r *roff) verbatim(lines []string) {
	r.line(".RS 4")
	r.line(".EX")
	for _, l := range lines {
		r.line(guarded(literal(strings.TrimPrefix(l, "  "))))
	}
	r.line(".EE")
	r.line(".RE")
}

// width is that of the lines of a source, for those who read it.
const width = 76

// prose writes text in lines of about that width, each sentence on a line of its
// own, as sources of manuals are written.
func (r *roff) prose(s string) {
	line := ""
	flush := func() {
		if line != "" {
			r.line(guarded(text(line)))
		}
		line = ""
	}
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
		if strings.HasSuffix(word, ".") {
			flush()
		}
	}
	flush()
}

// guarded keeps a line from being taken for a request.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// code is what a reader may copy: each character is that of ASCII, where roff would
// make a hyphen or a curved quotation mark of it.
var code = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

func literal(s string) string { return code.Replace(s) }

// inText are the flags and the commands within a text.
var inText = regexp.MustCompile(`(^|[\s(])--?[A-Za-z][A-Za-z0-9-]*`)

// text escapes words, whose flags may be copied too.
func text(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	return inText.ReplaceAllStringFunc(s, func(flag string) string { return strings.ReplaceAll(flag, "-", `\-`) })
}
