package foreign

import (
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
