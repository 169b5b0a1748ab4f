package foreign

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// proxy is a section of haproxy.cfg, or the defaults that it starts from.
// HAProxy's settings are lines, and inheriting a section is copying its
// lines.
type proxy struct {
	kind, name string
	at         policyfile.Position
	lines      map[string]configLine // by keyword, the last one wins
	servers    []configLine          // default-server too, which holds for those below it
	acls       map[string][][]string // conditions by name, of which one is enough
	rules      []configLine          // http-request
	to         []string              // backends that it passes requests on to
	from       []*proxy              // what passes requests on to it
	bare       bool                  // no defaults apply to it
	open       policyfile.Position   // of a line about retries whose condition is not evaluated, or zero
}

// haproxy reads backend and listen sections with the defaults above them.
// Retries go out after a second or less, or at once to another server. There
// is no budget, and nothing bounds a request and its retries together.
//
// HAProxy reads several files as if they were one: a file without defaults has
// those of the only other file that has some.
func (r *reader) haproxy() {
	var files []*haproxyFile
	var defaults []*proxy // the last of each file that has some
	for i := range r.parts {
		f := haproxySectionsOf(&r.parts[i])
		files = append(files, f)
		if f.last != nil {
			defaults = append(defaults, f.last)
		}
	}
	var verify configLine // ssl-server-verify, for files without a global section
	var fronts []*proxy
	for _, f := range files {
		fronts = append(fronts, f.fronts...)
		// That of any of them may be meant, so that the laxest counts.
		if len(f.verify.words) > 1 && !slices.Contains(verify.words, "none") {
			verify = f.verify
		}
	}
	for _, f := range files {
		if at := f.client; at.Line > 0 {
			r.refuse(at, "R-9", &policyfile.Dependency{Name: "httpclient", At: at}, "tls.verify", "httpclient.ssl.verify none accepts any certificate")
		}
		said := false
		for _, p := range f.proxies {
			if p.bare && len(defaults) == 1 {
				p.inherit(defaults[0])
			}
			if p.bare && p.argument("timeout connect") == "" && !said {
				said = true
				r.unjudged(p.at, p.name, "no defaults apply here: if another file has them, give it to check too")
			}
			p.behind(fronts)
			if f.global {
				r.backend(p, f.verify)
			} else {
				r.backend(p, verify)
			}
		}
		if f.last != nil && !slices.ContainsFunc(files, func(f *haproxyFile) bool { return len(f.proxies) > 0 }) {
			r.unjudged(f.last.at, "", "these defaults are judged with their backends: give those files to check too")
		}
	}
}

// behind joins a backend with the sections that pass requests on: those that name it,
// and those that compute a name.
func (p *proxy) behind(fronts []*proxy) {
	for _, f := range fronts {
		if slices.ContainsFunc(f.to, func(name string) bool { return name == p.name || strings.ContainsAny(name, "%${") }) {
			p.from = append(p.from, f)
		}
		p.open = cmp.Or(p.open, f.open) // what any of them sets may hold for it
	}
}

// haproxyFile is what a file holds.
type haproxyFile struct {
	proxies []*proxy          // with servers of their own, it may be
	fronts  []*proxy          // frontends, and sections that are both
	named   map[string]*proxy // defaults with a name
	last    *proxy            // the last defaults so far
	global  bool              // it has a section of that name
	verify  configLine
	client  policyfile.Position // where HAProxy's own client verifies nothing, or zero
}

func haproxySectionsOf(part *Part) *haproxyFile {
	f := &haproxyFile{named: map[string]*proxy{}}
	var current *proxy
	global, line, within := false, 0, false
	for text := range strings.Lines(string(part.Text)) {
		line++
		words := haproxyWords(text)
		if len(words) == 0 {
			continue
		}
		if conditional(words[0]) {
			within = !slices.Contains(words, ".endif") && !slices.Contains(words, "endif") && !slices.Contains(words, "endfor")
			continue
		}
		// The column of the first word, since lines are indented.
		at := part.at(line, len(text)-len(strings.TrimLeft(text, " \t"))+1)
		switch {
		case slices.Contains(haproxySections, words[0]):
			current, global = f.begin(words, at), words[0] == "global"
			f.global = f.global || global
		case global && words[0] == "ssl-server-verify":
			f.verify = configLine{words, at}
		case global && words[0] == "httpclient.ssl.verify" && slices.Contains(words, "none"):
			f.client = at
		case current != nil:
			l := configLine{words, at}
			current.read(l)
			if within && (words[0] == "retries" || words[0] == "retry-on" || slices.Contains(words, "disable-l7-retry")) || l.setsRetries() {
				current.open = at
			}
		}
	}
	return f
}

// begin opens a section on top of the defaults that apply to it: those that it names
// with "from", or the last ones above it. It is nil for one that no request goes through.
func (f *haproxyFile) begin(words []string, at policyfile.Position) *proxy {
	if !slices.Contains([]string{"defaults", "frontend", "backend", "listen"}, words[0]) {
		return nil
	}
	p := &proxy{kind: words[0], name: "unnamed", at: at, lines: map[string]configLine{}, acls: map[string][][]string{}}
	if len(words) > 1 && words[1] != "from" {
		p.name = words[1]
	}
	var from *proxy
	if i := slices.Index(words, "from"); i >= 0 && i+1 < len(words) {
		from = f.named[words[i+1]]
	} else if p.kind != "defaults" {
		// New defaults start from HAProxy's own, not from those above.
		from = f.last
	}
	if from != nil {
		p.inherit(from)
	}
	p.bare = from == nil
	if p.kind == "defaults" {
		f.named[p.name], f.last = p, p
	}
	if p.kind == "frontend" || p.kind == "listen" {
		f.fronts = append(f.fronts, p)
	}
	if p.kind == "backend" || p.kind == "listen" {
		f.proxies = append(f.proxies, p)
	}
	return p
}

// inherit copies what a section starts from. What it has itself holds.
func (p *proxy) inherit(from *proxy) {
	lines, acls := maps.Clone(from.lines), maps.Clone(from.acls)
	maps.Copy(lines, p.lines)
	maps.Copy(acls, p.acls)
	p.lines, p.acls, p.bare = lines, acls, false
	p.open = cmp.Or(p.open, from.open)
	p.servers = slices.Concat(from.servers, p.servers)
	p.rules = slices.Concat(from.rules, p.rules)
}

// read keeps the lines that matter to retries and skips the rest.
func (p *proxy) read(l configLine) {
	switch w := l.words; {
	case w[0] == "retries" || w[0] == "retry-on" || w[0] == "mode":
		p.lines[w[0]] = l
	case w[0] == "timeout" && len(w) > 2:
		p.lines["timeout "+w[1]] = l
	case w[0] == "server" || w[0] == "default-server" || w[0] == "server-template":
		p.servers = append(p.servers, l)
	case (w[0] == "use_backend" || w[0] == "default_backend") && len(w) > 1:
		p.to = append(p.to, w[1])
	case w[0] == "acl" && len(w) > 2:
		p.acls[w[1]] = append(slices.Clone(p.acls[w[1]]), w[2:])
	case w[0] == "http-request" && len(w) > 1:
		p.rules = append(p.rules, l)
	}
}

// argument returns the first argument of a line, or "".
func (p *proxy) argument(keyword string) string {
	if l := p.lines[keyword]; len(l.words) > 1 {
		return l.words[len(strings.Fields(keyword))]
	}
	return ""
}
