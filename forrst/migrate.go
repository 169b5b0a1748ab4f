package forrst

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Migration is the result of [Migrate] for one document.
type Migration struct {
	Text    []byte
	Changes []Place // what was rewritten
	Left    []Place // what a person must look at
	edits   []edit
	from    []byte
}

// Place is a line of the document, and what was done or is to be done there.
type Place struct {
	Line int // from 1
	What string
}

// Migrate rewrites a document from the retryable boolean to the retry
// extension: a JSON document, or every JSON example of a Markdown document. In
// each response envelope the boolean goes, and an extension comes that says the
// same, timed by the error's details or by the default for its code; an
// extension that is there already stays as it is. Nothing else of the text
// changes. A second run changes nothing.
func Migrate(text []byte, markdown bool) Migration {
	m := Migration{from: text}
	if markdown {
		m.markdown()
	} else {
		m.document(0, len(text), true)
	}
	m.Text = apply(text, m.edits)
	return m
}

// markdown walks the fenced blocks, and names the places in the prose that a
// person has to rewrite.
func (m *Migration) markdown() {
	fence, start, at := "", 0, 0
	for line := range bytes.Lines(m.from) {
		trimmed := strings.TrimSpace(string(line))
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence, start = trimmed[:3], at+len(line)
		case fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "":
			m.document(start, at, false)
			fence = ""
		case fence == "" && strings.Contains(trimmed, "`retryable`"):
			m.left(at, "the text speaks of `retryable`")
		}
		at += len(line)
	}
	// A fence that is never closed reaches to the end of the document.
	if fence != "" {
		m.document(start, len(m.from), false)
	}
}

// document rewrites the JSON document text[start:end], if it is one. must is
// set for a file that claims to be JSON: examples in Markdown may be
// anything.
func (m *Migration) document(start, end int, must bool) {
	part := m.from[start:end]
	if !bytes.Contains(part, []byte(`retryable`)) {
		return
	}
	doc, err := parse(part)
	if err != nil {
		if must || bytes.Contains(part, []byte(`"retryable"`)) {
			m.left(start+max(bytes.Index(part, []byte("retryable")), 0), "not JSON: rewrite it by hand")
		}
		return
	}
	doc.shift(start)
	m.walk(&doc)
}

// shift moves the places of a node by an offset: a fenced block is parsed by
// itself, and edited in the whole document.
func (n *node) shift(by int) {
	n.start += by
	n.end += by
	for i := range n.members {
		n.members[i].keyStart += by
		n.members[i].value.shift(by)
	}
	for i := range n.items {
		n.items[i].shift(by)
	}
}

// walk looks for envelopes, and for errors that stand alone. The latter lose
// the boolean and are listed: the extension belongs into a response that
// this document does not show.
func (m *Migration) walk(n *node) {
	if errs, ok := n.get("errors"); ok && len(errs.items) > 0 {
		m.envelope(n, errs)
		for i := range n.members {
			if &n.members[i].value != errs {
				m.walk(&n.members[i].value)
			}
		}
		return
	}
	if flag, ok := n.get("retryable"); ok {
		_, hasCode := n.get("code")
		if _, isBool := boolean(m.from[flag.start:flag.end]); isBool && hasCode {
			m.drop(n)
			m.left(flag.start, "an error without its envelope: the retry extension belongs into the response")
		} else {
			m.left(flag.start, "retryable is no boolean of an error: rewrite it by hand")
		}
	}
	for i := range n.members {
		m.walk(&n.members[i].value)
	}
	for i := range n.items {
		m.walk(&n.items[i])
	}
}

// envelope rewrites one response. An envelope without the boolean is left as
// it is, however it is laid out.
func (m *Migration) envelope(n, errs *node) {
	list := make([]Error, 0, len(errs.items))
	flagged := false
	for i := range errs.items {
		item := &errs.items[i]
		var e Error
		if code, ok := item.get("code"); ok {
			_ = json.Unmarshal(m.from[code.start:code.end], &e.Code)
		}
		if d, ok := item.get("details"); ok {
			e.Details = json.RawMessage(m.from[d.start:d.end])
		}
		if flag, ok := item.get("retryable"); ok {
			if e.retryable, e.flagged = boolean(m.from[flag.start:flag.end]); e.flagged {
				m.drop(item)
				flagged = true
			} else {
				m.left(flag.start, "retryable is no boolean: rewrite it by hand")
			}
		}
		list = append(list, e)
	}
	if flagged && !m.guided(n) { // an extension that is there ruled already
		m.extend(n, errs, equivalent(list))
	}
}

// guided reports whether an envelope has a valid retry extension. It rules
// over the boolean, so that dropping the boolean changes nothing.
func (m *Migration) guided(n *node) bool {
	list, ok := n.get("extensions")
	if !ok {
		return false
	}
	_, found := readGuidance(readExtensions(m.from[list.start:list.end]))
	return found
}

// equivalent returns the extension that says what the booleans, the details and
// the defaults for the codes say together: nothing may be retried when one of the
// errors may not, and the longest wait is for all, since the client makes one call
// again and not one error of it.
// The advice must mean the same as before: a migration that changed behavior
// would be noticed in an outage.
func equivalent(errs []Error) Retry {
	r := Response{Errors: errs}
	var longest Row
	for i := range errs {
		e := &errs[i]
		row, _ := Default(e.Code)
		if e.flagged && !e.retryable || !e.flagged && row.Strategy == "" {
			return Retry{} // one that must not be repeated speaks for all
		}
		row.Strategy = cmp.Or(row.Strategy, Exponential)
		if i == 0 || row.After > longest.After {
			longest = row
		}
	}
	chosen := longest.Retry()
	if d, ok := r.detailsWait(); ok {
		// Details say what this server knows: they take the default's place.
		chosen.After = new(DurationOf(d))
	}
	return chosen
}

// drop takes the retryable member out of an error, together with the comma
// and the space that set it apart. A document that has it twice loses both.
func (m *Migration) drop(n *node) {
	for i := 0; i < len(n.members); i++ {
		if n.members[i].name != "retryable" {
			continue
		}
		last := i
		for last+1 < len(n.members) && n.members[last+1].name == "retryable" {
			last++
		}
		e := edit{n.members[i].keyStart, n.members[last].value.end, ""}
		switch {
		case i > 0:
			e.start = n.members[i-1].value.end
		case last+1 < len(n.members):
			e.end = n.members[last+1].keyStart
		default:
			e.start, e.end = n.start+1, n.end-1
		}
		m.edits = append(m.edits, e)
		m.Changes = append(m.Changes, Place{m.line(n.members[i].keyStart), "retryable removed"})
		i = last
	}
}

// extend adds the extension, in the layout of the envelope: in lines with
// its indentation, or in one line.
func (m *Migration) extend(n, errs *node, r Retry) {
	key := slices.IndexFunc(n.members, func(member member) bool { return member.name == "errors" })
	indent, multiline := m.indent(n.members[key].keyStart)
	outer, _ := m.indent(n.start)
	unit := strings.TrimPrefix(indent, outer)
	if multiline = multiline && unit != ""; !multiline {
		indent, unit = "", ""
	}
	var start, end int
	var text string
	switch list, ok := n.get("extensions"); {
	case ok && len(list.items) > 0:
		start = list.items[len(list.items)-1].end
		end = start
		text = ", " + render(r.Extension(), indent, unit, multiline)
		if inner, own := m.indent(list.items[0].start); own {
			text = ",\n" + inner + render(r.Extension(), inner, unit, multiline)
		}
	case ok:
		start, end = list.start, list.end
		text = render([]Extension{r.Extension()}, indent, unit, multiline)
	default:
		start, end = errs.end, errs.end
		text = `,"extensions":`
		if multiline {
			text = ",\n" + indent + `"extensions": `
		}
		text += render([]Extension{r.Extension()}, indent, unit, multiline)
	}
	m.edits = append(m.edits, edit{start, end, m.newlines(text)})
	m.Changes = append(m.Changes, Place{m.line(start), "retry extension added"})
}

// render writes v as JSON, over several lines or in one. These types always
// marshal.
func render(v any, indent, unit string, multiline bool) string {
	var text []byte
	if multiline {
		text, _ = json.MarshalIndent(v, indent, unit)
	} else {
		text, _ = json.Marshal(v)
	}
	return string(text)
}

// newlines adapts a text to the line ends of the document: mixed ones would
// show as a change of every line.
func (m *Migration) newlines(s string) string {
	if bytes.Contains(m.from, []byte("\r\n")) {
		return strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// indent returns the white space before the text at a place; own says that
// nothing else stands before it in its line.
func (m *Migration) indent(at int) (space string, own bool) {
	begin := bytes.LastIndexByte(m.from[:at], '\n') + 1
	line := string(m.from[begin:at])
	rest := strings.TrimLeft(line, " \t")
	return line[:len(line)-len(rest)], rest == ""
}

// left records a place that a person must look at.
func (m *Migration) left(at int, what string) {
	m.Left = append(m.Left, Place{m.line(at), what})
}

// line returns the number of the line that holds a byte, from 1.
func (m *Migration) line(at int) int { return bytes.Count(m.from[:at], []byte("\n")) + 1 }

// String returns "12: retryable removed".
func (p Place) String() string { return fmt.Sprintf("%d: %s", p.Line, p.What) }
