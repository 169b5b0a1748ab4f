package foreign

import (
	"bytes"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// recordMark begins a DNS record of type TXT that holds gRPC's service configs (gRFC A2).
var recordMark = []byte("grpc_config=")

// records opens the DNS records of gRPC in a text: the content of one, or a zone file.
func (o *opener) records(data []byte, in frame, depth int) (found bool) {
	if !bytes.Contains(data, recordMark) {
		return false
	}
	offset, number := 0, 0
	for line := range bytes.Lines(data) {
		start := offset
		offset += len(line)
		number++
		text, _, _ := bytes.Cut(line, recordMark)
		before := bytes.TrimSpace(text)
		if len(text) == len(line) || len(before) > 0 && (before[0] == ';' || before[0] == '#') {
			continue
		}
		at := in.at(policyfile.Position{File: o.name, Line: number, Column: len(text) + 1})
		rest := data[start+len(text)+len(recordMark):]
		switch {
		case len(before) == 0:
			// The lines are those of the file.
			padded := bytes.Repeat([]byte("\n"), number-1)
			padded = append(append(padded, bytes.Repeat([]byte(" "), len(text)+len(recordMark))...), rest...)
			found = o.record(padded, in, at, depth) || found
		case before[len(before)-1] == '"':
			found = o.record([]byte(joined(rest)), frame{pin: &at}, at, depth) || found
		}
	}
	return found
}

// record opens the list of choices in one record.
func (o *opener) record(text []byte, in frame, at policyfile.Position, depth int) bool {
	root, err := tree.JSON(o.name, text)
	if err != nil {
		o.fault(at, "the service config of this DNS record is %s", err.(*policyfile.Fault).Message)
		return true
	}
	before := len(o.Parts)
	o.roots([]*tree.Node{root}, nil, in, depth)
	return len(o.Parts) > before
}

// joined returns the text of a record in a zone file, from within its first string on:
// the strings that follow on the line, or within its parentheses, belong to it.
func joined(rest []byte) string {
	var b strings.Builder
	quoted := true
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		case quoted:
			b.WriteByte(c)
		case c == '\n':
			// Only a string on the next line goes on with it.
			if next := bytes.TrimLeft(rest[i:], " \t\r\n"); len(next) == 0 || next[0] != '"' {
				return b.String()
			}
		case c == ')', c == ';':
			return b.String()
		}
	}
	return b.String()
}
