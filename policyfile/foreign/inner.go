package foreign

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// inner opens a text inside of a value, as ConfigMaps and charts have them.
func (o *opener) inner(n *tree.Node, key string, above *lines, depth int) {
	text := n.Value
	first := strings.TrimLeft(text, " \t\r\n")
	if first == "" || first[0] != '{' && first[0] != '[' && !strings.Contains(text, "\n") && !fileName(key) {
		return
	}
	outer := o.within
	o.inners++
	o.within = o.inners
	defer func() { o.within = outer }()
	in, ok := above.frame(n)
	if !ok {
		in = frame{pin: &n.At}
	}
	o.text(key, []byte(text), in, depth+1)
}

// fileName reports whether a key is the name of a file of settings, which may be of one
// line.
func fileName(key string) bool {
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(key)))
}

// encoded opens what Kubernetes has in base64: the data of a Secret, where
// configuration lies that has a password in it, and binaryData.
func (o *opener) encoded(n *tree.Node, depth int) {
	key := map[string]string{"Secret": "data", "ConfigMap": "binaryData"}[n.Get("kind").Text()]
	for _, p := range n.Get(key).Fields() {
		if text, err := base64.StdEncoding.DecodeString(p.Value.Text()); err == nil {
			o.inner(&tree.Node{Value: string(text), At: p.Value.At}, p.Key, nil, depth)
		}
	}
}

// frame says where a text stands in its file. The zero value is the file itself.
type frame struct {
	pin            *policyfile.Position // of a text whose lines are not those of the file
	lines, columns int                  // above and before one that stands there as it is
}

// at turns a place in the text into one in the file; what has no place counts as line 1.
func (in frame) at(at policyfile.Position) policyfile.Position {
	if in.pin != nil {
		return *in.pin
	}
	at.Line, at.Column = max(at.Line, 1)+in.lines, max(at.Column, 1)+in.columns
	return at
}

// pad puts a text where its lines are those of the file.
func (in frame) pad(text []byte) []byte {
	if in.lines == 0 {
		return text
	}
	var b bytes.Buffer
	b.WriteString(strings.Repeat("\n", in.lines))
	for line := range bytes.Lines(text) {
		// YAML knows the marks of its documents in the first column alone.
		if len(bytes.TrimSpace(line)) > 0 && !documentMark(line) {
			b.WriteString(strings.Repeat(" ", in.columns))
		}
		b.Write(line)
	}
	return b.Bytes()
}

// documentMark reports whether a line begins or ends a document of YAML.
func documentMark(line []byte) bool {
	rest, begins := bytes.CutPrefix(line, []byte("---"))
	if !begins {
		rest, begins = bytes.CutPrefix(line, []byte("..."))
	}
	return begins && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// lines are those of a text that stands at in. A file may hold thousands of blocks, so that
// it is split once, and not before the first of them.
type lines struct {
	in  frame
	all func() [][]byte
}

func linesOf(text []byte, in frame) *lines {
	return &lines{in: in, all: sync.OnceValue(func() [][]byte { return bytes.Split(text, []byte("\n")) })}
}

// frame returns where the text of a literal block stands; ok is false for a text whose
// lines are not those of the file.
func (l *lines) frame(n *tree.Node) (in frame, ok bool) {
	if !n.Block || l == nil || l.in.pin != nil {
		return in, false
	}
	first, all := n.At.Line-l.in.lines, l.all() // the line below the mark of the block
	for i, line := range strings.Split(n.Value, "\n") {
		if line = strings.TrimRight(line, "\r"); strings.TrimSpace(line) == "" {
			continue
		}
		if first < 0 || first+i >= len(all) {
			break
		}
		before, found := bytes.CutSuffix(bytes.TrimRight(all[first+i], "\r"), []byte(line))
		return frame{lines: n.At.Line, columns: l.in.columns + len(before)}, found
	}
	return in, false
}
