package foreign

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// MaxSize is the largest file that is read, in bytes: a dump of a cluster is
// larger than a policy file.
const MaxSize = 64 << 20

// Part is what [Open] found in a file: a configuration of one product.
type Part struct {
	Format string
	Name   string // of the file
	// Root is the part of a structured file, and Text one in a notation of the
	// product's own, of the lines that in says.
	Root *tree.Node
	Text []byte
	// Path are the keys above Root, as "clients.orders".
	Path string
	// inner tells the texts inside of a file apart; 0 is the file itself.
	inner int
	in    frame
	// Assumed says that Format was given, and that nothing in the part shows it.
	Assumed bool
	// called is the name of the file, or of the key that a text stands under.
	called string
	dirs   []string // see folders
	// beside is what the file says of retries that no product claims, or nil. One part of
	// a file has it.
	beside *policyfile.Fault
}

// at is a position in Text; what has no place counts as line 1.
func (p *Part) at(line, column int) policyfile.Position {
	return p.in.at(policyfile.Position{File: p.Name, Line: line, Column: column})
}

// Opened is what a file holds. One without parts and policies is not recognized.
type Opened struct {
	Parts []Part
	// Policies are policy files: the file itself, or texts inside of it. Their lines are
	// those of the file.
	Policies [][]byte
	// Faults keep parts from being read. They may stand beside other parts, which
	// are judged all the same.
	Faults []*policyfile.Fault
	// Why says what an unrecognized file is taken for, or "".
	Why string
	// Retry is where a file first says something of retries that no product claims, or
	// zero, and Setting what it sets there.
	Retry   policyfile.Position
	Setting string
}

// Open tells what a file is, by its parsed structure, and opens what contains
// others: lists of Kubernetes, ConfigMaps, values of charts, dumps. format
// overrides what it would find: "forbear" or one of [Formats].
func Open(name string, data []byte, format string) *Opened {
	return open(name, data, format, true)
}

// OpenMet is Open for a file that no one named. It has to say that it is a policy file,
// where it is one.
func OpenMet(name string, data []byte, format string) *Opened {
	return open(name, data, format, false)
}

func open(name string, data []byte, format string, named bool) *Opened {
	o := &opener{Opened: &Opened{}, name: name, format: format, named: named}
	switch {
	case len(data) > MaxSize:
		o.fault(policyfile.Position{}, "larger than %d MiB", MaxSize>>20)
	case format == "forbear" || format == "" && shapedLikePolicy(data):
		o.Policies = [][]byte{data}
	case format != "" && !known(format):
		o.fault(policyfile.Position{}, "unknown format %q: want forbear, %s", format, strings.Join(Formats(), ", "))
	default:
		o.text(filepath.Base(name), data, frame{}, 0)
		switch {
		case len(o.Parts) > 0 && format == "":
			o.Parts[0].beside = o.unread()
		case len(o.Parts)+len(o.Policies)+len(o.Faults) == 0:
			o.unrecognized(data)
			if o.Why == "" && o.Retry.Line == 0 {
				o.Why = o.sight
			}
		}
	}
	return o.Opened
}

// opener opens one file.
type opener struct {
	*Opened
	name      string
	named     bool                // by a user, who takes it for something that is judged
	format    string              // the only one that is wanted, or ""
	unclaimed []*tree.Node        // the documents of the file
	path      []string            // the keys above what is looked at
	inners    int                 // how many texts inside of the file were opened
	within    int                 // the one that is looked at, or 0
	owned     map[*tree.Node]bool // what products have of the maps that they share
	sight     string              // what is known of a file that says nothing of retries, see recognized
	told      int                 // how many of the maps around what is looked at are of such software, and named, or a schema
	resource  string              // the type of the one around what is looked at, or ""
}

func (o *opener) fault(at policyfile.Position, format string, args ...any) {
	at.File, at.Line, at.Column = o.name, max(at.Line, 1), max(at.Column, 1)
	o.Faults = append(o.Faults, &policyfile.Fault{Position: at, Message: fmt.Sprintf(format, args...)})
}

// text opens a text: the file itself, or one inside of it, which called stands for.
// in is where it stands.
func (o *opener) text(called string, data []byte, in frame, depth int) {
	const most = 5
	if depth > most {
		o.fault(in.at(policyfile.Position{}), "texts are nested more than %d deep", most)
		return
	}
	ext := strings.ToLower(filepath.Ext(called))
	first := bytes.TrimLeft(data, " \t\r\n\ufeff")
	structured := structuredName(called)
	switch {
	case len(first) == 0:
	case o.called(called, data, in), Program(called):
	case ext == ".toml", ext == ".hcl", ext == ".tf":
		o.statements(data, in)
	case ext == ".properties":
		o.roots(called, tree.Properties(o.name, data), nil, in, depth)
	case first[0] != '{' && o.ini(called, data, in, depth):
	case first[0] == '{' || first[0] == '[':
		o.json(called, data, in, depth)
	case !structured && o.spoken(called, data, in):
	case structured || depth == 0 || bytes.IndexByte(data, '\n') >= 0:
		o.yaml(called, data, in, depth)
	}
}

// ini opens a text of sections, if it is one. A list of JSON begins as it does.
func (o *opener) ini(called string, data []byte, in frame, depth int) bool {
	root, ok := tree.INI(o.name, data)
	if ok {
		o.roots(called, []*tree.Node{root}, nil, in, depth)
	}
	return ok
}

// spoken looks for a product whose own notation a text is in.
func (o *opener) spoken(called string, data []byte, in frame) bool {
	for _, p := range products {
		if p.speaks == nil || o.format != "" && o.format != p.name {
			continue
		}
		ok, fault := p.speaks(called, data)
		if fault != nil {
			o.fault(in.at(fault.Position), "%s", fault.Message)
			return true
		}
		if ok || o.format == p.name {
			o.Parts = append(o.Parts, Part{Format: p.name, Name: o.name, Text: data, Assumed: !ok, in: in, called: called})
			return true
		}
	}
	return false
}

// json opens a JSON text. One that is not JSON is of interest when it holds a
// product's configuration under its comments, or speaks of retries.
func (o *opener) json(called string, data []byte, in frame, depth int) {
	root, fault := tree.JSON(o.name, data)
	if fault != nil && commented(called) {
		root, fault = tree.JSON(o.name, lineComment.ReplaceAll(data, nil))
	}
	if fault == nil {
		o.roots(called, []*tree.Node{root}, data, in, depth)
		return
	}
	// YAML in flow style begins with a brace too, and is no JSON. Policy files are read
	// as YAML, whatever they are called.
	if roots, other := tree.YAML(o.name, data); other == nil && (filepath.Ext(called) != ".json" || slices.ContainsFunc(roots, func(n *tree.Node) bool { return isPolicy(n, o.named && depth == 0, namedPolicy(called)) })) {
		o.roots(called, roots, data, in, depth)
		return
	}
	o.unparsed(called, fault, data, in, depth)
}

// lineComment matches a line that is a comment, which some programs take in JSON.
var lineComment = regexp.MustCompile(`(?m)^[ \t]*//.*$`)

// commented reports whether the program that a file is for takes comments in JSON, as
// .NET does.
func commented(called string) bool {
	base := strings.ToLower(filepath.Base(called))
	return strings.HasSuffix(base, ".jsonc") || strings.HasSuffix(base, ".json") && strings.HasPrefix(base, "appsettings")
}

func (o *opener) yaml(called string, data []byte, in frame, depth int) {
	roots, fault := tree.YAML(o.name, data)
	o.roots(called, roots, data, in, depth)
	if fault != nil {
		o.unparsed(called, fault, data, in, depth)
	}
}

// roots opens the documents of a structured text. data is nil in a notation that no
// policy file has.
func (o *opener) roots(called string, roots []*tree.Node, data []byte, in frame, depth int) {
	above := linesOf(data, in)
	for _, root := range roots {
		if in != (frame{}) {
			root.Move(in.at)
		}
		if depth == 0 {
			o.unclaimed = append(o.unclaimed, root)
		}
		if o.format == "" && data != nil && isPolicy(root, o.named && depth == 0, namedPolicy(called)) {
			o.Policies = append(o.Policies, in.pad(data))
			return // the reader of policy files says what is wrong with the rest
		}
		before := len(o.Parts)
		o.node(root, above, depth)
		// What a format is given for is of that format.
		if o.format != "" && len(o.Parts) == before {
			o.Parts = append(o.Parts, Part{Format: o.format, Name: o.name, Root: root, Assumed: true})
		}
	}
}

// node looks for the parts at and below n. What a product claims is read by it, and
// not looked into again unless it may hold those of others. above are the lines that
// literal blocks stand in.
func (o *opener) node(root *tree.Node, above *lines, depth int) {
	seen := map[*tree.Node]bool{}
	path := o.path
	o.path = nil
	defer func() { o.path = path }()
	var visit func(n *tree.Node, key string)
	visit = func(n *tree.Node, key string) {
		if n == nil || seen[n] || o.owned[n] {
			return
		}
		seen[n] = true
		switch n.Kind {
		case tree.Scalar:
			o.inner(n, key, above, depth)
		case tree.List:
			o.sighted(n)
			for _, item := range n.Items {
				visit(item, key)
			}
		case tree.Map:
			if o.claimed(n) {
				return
			}
			if o.sighted(n) || isSchema(key, n) {
				o.told++
				defer func() { o.told-- }()
			}
			if kind := resourceOf(o.path, n); kind != "" {
				defer func(outer string) { o.resource = outer }(o.resource)
				o.resource = kind
			}
			o.encoded(n, depth)
			if at := patched(n); at != nil {
				o.retry(at.Text(), at.At)
			}
			if v := n.Get("name"); variableAboutRetries(v.Text()) && (n.Has("value") || n.Has("valueFrom")) {
				o.retry(v.Text(), v.At)
			}
			for _, p := range n.Pairs {
				if o.owned[p.Value] || p.Key == lastApplied {
					continue
				}
				about, known := aboutRetries(p.Key) || variableAboutRetries(p.Key), len(o.Parts)+len(o.Faults)
				about = about && !(p.Key == "retries" && isProbe(key, n))
				o.path = append(o.path, p.Key)
				visit(p.Value, p.Key)
				o.path = o.path[:len(o.path)-1]
				// What such a key is about has been read where a product claims a part of it.
				if about && len(o.Parts)+len(o.Faults) == known && !isText(p.Value) {
					o.retry(p.Key, p.At)
				}
			}
		}
	}
	visit(root, "")
}

// lastApplied is the annotation in which kubectl keeps a resource as it was last applied:
// a copy, or what no longer holds.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// retry records the first setting for retries that no product claims.
func (o *opener) retry(key string, at policyfile.Position) {
	first := o.Retry.Line == 0 || at.Line < o.Retry.Line || at.Line == o.Retry.Line && at.Column < o.Retry.Column
	if o.told == 0 && first {
		o.Retry = policyfile.Position{File: o.name, Line: at.Line, Column: at.Column}
		o.Setting = describe(key, o.resource)
	}
}

// unread is the fault of a setting that stands beside what is read, or nil.
func (o *opener) unread() *policyfile.Fault {
	if o.Retry.Line == 0 {
		return nil
	}
	return &policyfile.Fault{Position: o.Retry, Message: "a retry setting that check does not read: " + o.Setting}
}

// claimed gives n to the products that claim it, and reports whether one of them has
// all of it.
func (o *opener) claimed(n *tree.Node) bool {
	found := false
	for _, p := range products {
		if p.claims == nil || o.format != "" && o.format != p.name || !p.claims(n) {
			continue
		}
		var own []*tree.Node
		if p.own != nil {
			own = p.own(n)
		}
		// The labels of a container are those of the map that it stands in.
		if len(own) > 0 && !slices.ContainsFunc(own, func(v *tree.Node) bool { return !o.owned[v] }) {
			continue
		}
		// A part of what holds it has been looked at with it.
		if at, twice := n.Repeated(); twice && !found && !slices.ContainsFunc(o.Faults, func(f *policyfile.Fault) bool { return f.Position == at }) {
			o.fault(at, "a key appears twice here: programs differ in which one they use")
		}
		o.Parts = append(o.Parts, Part{Format: p.name, Name: o.name, Root: n, Path: strings.Join(o.path, "."), inner: o.within})
		found = true
		if len(own) == 0 && !p.holds {
			return true
		}
		if o.owned == nil {
			o.owned = map[*tree.Node]bool{}
		}
		for _, v := range own {
			o.owned[v] = true
		}
	}
	return false
}
