package forrst

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Migration is the result of [Migrate] for one document.
type Migration struct {
	Text    []byte
	Changes []Place // what was rewritten
	Left    []Place // what a person must look at
	Kept    []Place // business data with a field of that name, left alone
	edits   []edit
	from    []byte
}

// Place is a line of the document, and what was done or is to be done there.
type Place struct {
	Line int    `json:"line"` // from 1
	Kind Kind   `json:"kind"`
	What string `json:"what"`
}

// Kind says what stands at a [Place].
type Kind string

const (
	KindRemoved Kind = "removed" // the boolean of an error
	KindAdded   Kind = "added"   // the extension of a response

	KindTable Kind = "table" // a table of Markdown
	KindText  Kind = "text"  // other text of Markdown
	KindCode  Kind = "code"  // an example that is not JSON
	KindJSON  Kind = "json"  // JSON that is no response
	KindData  Kind = "data"  // business data
)

// Migrate rewrites a document from the retryable boolean to the retry
// extension: a JSON document, or every JSON example of a Markdown document. In
// each response envelope the boolean of its errors goes, and an extension comes that
// says the same, timed by the error's details or by the default for its code; an
// extension that is there already stays as it is. Nothing else of the text
// changes, and no field of that name in a result, in arguments, in details or in any
// other business data. A second run changes nothing.
func Migrate(text []byte, markdown bool) Migration {
	m := Migration{from: text, Changes: []Place{}, Left: []Place{}, Kept: []Place{}} // lists in JSON, not null
	if markdown {
		m.markdown()
	} else {
		m.document(0, len(text), true)
	}
	m.Text = apply(text, m.edits)
	return m
}

// document rewrites the JSON document text[start:end], and reports whether it is
// one. must is set for what claims to be JSON: other examples in Markdown may be
// anything.
func (m *Migration) document(start, end int, must bool) (ok bool) {
	part := m.from[start:end]
	at := bytes.Index(part, []byte("retryable"))
	doc, err := parse(part)
	switch {
	case err == nil && at >= 0:
		doc.shift(start)
		m.walk(&doc, true)
	case err != nil && at >= 0 && must:
		m.left(start+at, KindJSON, "not JSON: rewrite it by hand")
	}
	return err == nil || must
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

// dataOf are the members whose values are a service's own: a field retryable in them
// is not the protocol's. A whole envelope in one of them, as an example beside
// its request, is.
var dataOf = map[string]bool{
	"result": true, "arguments": true, "call": true, "data": true, "options": true, "meta": true, "context": true,
	"details": true, "source": true,
}

// walk looks for envelopes, and for errors that stand alone, as a document or in
// a list that is one (root). The latter lose the boolean and are listed: the
// extension belongs into a response that this document does not show.
func (m *Migration) walk(n *node, root bool) {
	if m.isEnvelope(n) {
		m.envelope(n)
		return
	}
	if flag, ok := n.get("retryable"); ok {
		_, isBool := boolean(m.from[flag.start:flag.end])
		if root && isBool && m.hasCode(n) {
			m.drop(n)
			m.left(flag.start, KindJSON, "an error without its envelope: the retry extension belongs into the response")
		} else {
			m.left(flag.start, KindJSON, "retryable is no boolean of a response's error: if it means one, rewrite it by hand")
		}
	}
	for i := range n.members {
		if v := &n.members[i].value; dataOf[n.members[i].name] {
			m.data(v)
		} else {
			m.walk(v, root && n.members[i].name == "error")
		}
	}
	for i := range n.items {
		m.walk(&n.items[i], root)
	}
}

// isEnvelope reports whether n is a response or a request of the protocol. One that
// does not name its protocol, as examples often do, has errors with the protocol's codes,
// and no result beside them.
func (m *Migration) isEnvelope(n *node) bool {
	if p, ok := n.get("protocol"); ok && isForrst(m.from[p.start:p.end]) {
		return true
	}
	errs, ok := n.get("errors")
	if r, has := n.get("result"); !ok || has && !isNull(m.from[r.start:r.end]) {
		return false
	}
	return len(errs.items) > 0 && !slices.ContainsFunc(errs.items, func(e node) bool { return !m.hasCode(&e) })
}

// code is what the protocol's codes look like.
var code = regexp.MustCompile(`^"[A-Z][A-Z0-9_]*"$`)

// hasCode reports whether n is an object with a code of the protocol.
func (m *Migration) hasCode(n *node) bool {
	c, ok := n.get("code")
	return ok && code.Match(m.from[c.start:c.end])
}

// data looks through business data, of which only envelopes that name their
// protocol are rewritten.
func (m *Migration) data(n *node) {
	if p, ok := n.get("protocol"); ok && isForrst(m.from[p.start:p.end]) {
		m.envelope(n)
		return
	}
	if flag, ok := n.get("retryable"); ok {
		m.kept(flag.start)
	}
	for i := range n.members {
		m.data(&n.members[i].value)
	}
	for i := range n.items {
		m.data(&n.items[i])
	}
}

// envelope rewrites one message. A response without the boolean is left as it is,
// however it is laid out; so are requests, and what is in neither errors nor
// extensions.
func (m *Migration) envelope(n *node) {
	for i := range n.members {
		switch name, v := n.members[i].name, &n.members[i].value; {
		case name == "errors":
		case dataOf[name] || name == "extensions":
			m.keep(v)
		default:
			m.walk(v, false)
		}
	}
	errs, ok := n.get("errors")
	if !ok || len(errs.items) == 0 {
		return
	}
	list := make([]Error, 0, len(errs.items))
	flagged := false
	for i := range errs.items {
		item := &errs.items[i]
		var e Error
		if code, ok := item.get("code"); ok {
			_ = json.Unmarshal(m.from[code.start:code.end], &e.Code)
		}
		for k := range item.members {
			m.keep(&item.members[k].value)
		}
		if d, ok := item.get("details"); ok {
			e.Details = json.RawMessage(m.from[d.start:d.end])
		}
		if flag, ok := item.get("retryable"); ok {
			if e.retryable, e.flagged = boolean(m.from[flag.start:flag.end]); e.flagged {
				m.drop(item)
				flagged = true
			} else {
				m.left(flag.start, KindJSON, "retryable is no boolean: rewrite it by hand")
			}
		}
		list = append(list, e)
	}
	if flagged && !m.guided(n) { // an extension that is there ruled already
		m.extend(n, errs, equivalent(list))
	}
}

// keep notes each field of business data that bears the boolean's name.
func (m *Migration) keep(n *node) {
	if flag, ok := n.get("retryable"); ok {
		m.kept(flag.start)
	}
	for i := range n.members {
		m.keep(&n.members[i].value)
	}
	for i := range n.items {
		m.keep(&n.items[i])
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
		m.Changes = append(m.Changes, Place{m.line(n.members[i].keyStart), KindRemoved, "retryable removed"})
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
	m.Changes = append(m.Changes, Place{m.line(start), KindAdded, "retry extension added"})
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
func (m *Migration) left(at int, kind Kind, what string) {
	m.Left = append(m.Left, Place{m.line(at), kind, what})
}

// kept records a field of business data.
func (m *Migration) kept(at int) {
	m.Kept = append(m.Kept, Place{m.line(at), KindData, "retryable is business data: not touched"})
}

// line returns the number of the line that holds a byte, from 1.
func (m *Migration) line(at int) int { return bytes.Count(m.from[:at], []byte("\n")) + 1 }

// String returns "12: retryable removed".
func (p Place) String() string { return fmt.Sprintf("%d: %s", p.Line, p.What) }
