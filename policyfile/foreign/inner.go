package foreign

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"

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
	if n.Block && !o.holds(key, []byte(text), depth+1) {
		return
	}
	if padded, ok := pad(n, above); ok {
		o.text(key, padded, nil, depth+1)
		return
	}
	o.text(key, []byte(text), &n.At, depth+1)
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

// holds reports whether there is anything in a text. Most of the texts in a dump of a
// cluster hold nothing, and to move each of those to its lines would take the square
// of their number.
func (o *opener) holds(called string, text []byte, depth int) bool {
	if o.trial {
		return true
	}
	t := &opener{Opened: &Opened{}, name: o.name, format: o.format, trial: true}
	t.text(called, text, nil, depth)
	return len(t.Parts)+len(t.Policies)+len(t.Faults)+t.Retry.Line > 0
}

// pad puts the text of a literal block where the file has it: as many lines down,
// and as far in. ok is false for a text whose lines are not those of the file.
func pad(n *tree.Node, above *lines) (padded []byte, ok bool) {
	if !n.Block {
		return nil, false
	}
	inner := strings.Split(n.Value, "\n")
	rest, ok := above.behind(n.At.Line)
	if !ok {
		return nil, false
	}
	indent := -1
	for _, line := range inner {
		outer, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !bytes.HasSuffix(bytes.TrimRight(outer, "\r"), []byte(strings.TrimRight(line, "\r"))) {
			return nil, false
		}
		indent = len(bytes.TrimRight(outer, "\r")) - len(strings.TrimRight(line, "\r"))
		break
	}
	if indent < 0 {
		return nil, false
	}
	var b bytes.Buffer
	b.WriteString(strings.Repeat("\n", n.At.Line))
	for i, line := range inner {
		if i > 0 {
			b.WriteByte('\n')
		}
		// YAML knows the marks of its documents in the first column alone.
		if line != "" && !documentMark(line) {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.WriteString(line)
	}
	return b.Bytes(), true
}

// documentMark reports whether a line begins or ends a document of YAML.
func documentMark(line string) bool {
	rest, begins := strings.CutPrefix(line, "---")
	if !begins {
		rest, begins = strings.CutPrefix(line, "...")
	}
	return begins && (rest == "" || strings.ContainsRune(" \t\r", rune(rest[0])))
}

// lines finds the lines of a text by their numbers. A file may hold thousands of
// blocks, so that the way to each of them is not gone from the beginning.
type lines struct {
	text   []byte
	starts []int // behind each line feed, or nil as long as no line was asked for
}

// behind returns what stands behind so many line feeds; ok is false when there are fewer.
func (l *lines) behind(feeds int) (rest []byte, ok bool) {
	if l.starts == nil {
		l.starts = []int{0}
		for i, c := range l.text {
			if c == '\n' {
				l.starts = append(l.starts, i+1)
			}
		}
	}
	if feeds >= len(l.starts) {
		return nil, false
	}
	return l.text[l.starts[feeds]:], true
}
