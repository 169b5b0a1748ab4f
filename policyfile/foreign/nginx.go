package foreign

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// nginxModule is what passes requests on: its directives begin with prefix, and it
// speaks TLS to addresses of the scheme tls.
type nginxModule struct{ prefix, tls string }

// nginxModules are those of HTTP, by the directive that names the address. Their
// directives about retries have the same words and defaults. The module of streams
// has proxy_pass too, and other ones.
var nginxModules = map[string]nginxModule{
	"proxy_pass":     {"proxy", "https"},
	"grpc_pass":      {"grpc", "grpcs"},
	"fastcgi_pass":   {"fastcgi", ""},
	"uwsgi_pass":     {"uwsgi", "suwsgi"},
	"scgi_pass":      {"scgi", ""},
	"memcached_pass": {"memcached", ""},
}

// nginxTimeout is the default of the time-outs for connecting and for reading, such
// as proxy_read_timeout in ngx_http_proxy_module. The latter bounds the time between
// two reads, and so comes closest to an attempt's timeout.
const nginxTimeout = 60 * time.Second

// nginx reads proxy_next_upstream and its kin. Tries include the first one.
// The next server is tried at once, there is no budget, and without a limit
// on tries every server of the upstream is tried.
//
// The defaults retry errors and timeouts: an nginx that says nothing of
// retries has them.
func (r *reader) nginx() {
	roots := nginxTrees(r.parts)
	w := &nginxWalk{r: r, told: memory{}}
	for i := range roots {
		roots[i].upstreams = map[string]*nginxUpstream{}
		findUpstreams(roots[i].all, "", roots[i].upstreams)
		w.roots = append(w.roots, &roots[i])
	}
	for _, root := range w.roots {
		w.root = root
		w.block(root.all, nginxScope{set: map[string]nginxSetting{}})
		if !slices.ContainsFunc(root.all, passes) {
			w.setElsewhere(root.all)
		}
	}
	for _, root := range w.roots {
		w.unused(root)
	}
}

// nginxWalk walks the blocks of all trees.
type nginxWalk struct {
	r        *reader
	roots    []*nginxTree
	root     *nginxTree // the one that is walked
	told     memory     // what is judged or said already
	variable bool       // requests are passed on to what a variable says
}

// nginxScope is what holds inside of a block.
type nginxScope struct {
	set    map[string]nginxSetting
	path   string // of the block: the server's names and addresses, and its locations
	block  string // the innermost block's kind
	stream bool
	udp    bool
	writes nginxWrites
	served nginxWrites // what the server's own conditions leave of them
	unread bool        // an include here or above is not among the files

	connection string // what becomes of the header: "set", "close" or ""
}

// nginxSetting is a directive that blocks pass on to those within them, with the
// path of the block that it stands in.
type nginxSetting struct {
	directive
	path string
}

// nginxInherits reports whether a directive is one that matters to retries, and
// that an inner block takes from the outer one unless it has its own.
func nginxInherits(name string) bool {
	if name == "proxy_connect_timeout" || name == "proxy_ssl" {
		return true // of streams
	}
	for _, m := range nginxModules {
		rest, ok := strings.CutPrefix(name, m.prefix+"_")
		if ok && slices.Contains([]string{"next_upstream", "next_upstream_tries", "next_upstream_timeout", "read_timeout", "ssl_verify", "http_version", "keep_conn"}, rest) {
			return true
		}
	}
	return false
}

// nginxTables are blocks that hold no directives for requests, but servers and values.
var nginxTables = []string{"upstream", "map", "geo", "types", "split_clients", "charset_map"}

// block walks a block. Directives are collected first, since nginx does not care
// whether they stand above or below the proxy_pass.
func (w *nginxWalk) block(block []directive, s nginxScope) {
	// A copy for each block: siblings must not see each other's directives.
	s.set = maps.Clone(s.set)
	if slices.ContainsFunc(block, func(d directive) bool { return d.args[0] == "proxy_set_header" }) {
		s.connection = "" // a block's headers hide all of those above
	}
	for _, d := range block {
		switch {
		case len(d.args) < 2:
		case d.args[0] == "proxy_set_header" && len(d.args) > 2 && strings.EqualFold(d.args[1], "Connection"):
			s.connection = "set"
			if strings.EqualFold(d.args[2], "close") {
				s.connection = "close"
			}
		case nginxInherits(d.args[0]):
			s.set[d.args[0]] = nginxSetting{d, s.path}
		case d.args[0] == "set" && len(d.args) > 2:
			s.set[d.args[1]] = nginxSetting{d, s.path}
		case d.args[0] == "include" && !harmless(d.args[1]):
			// The included file may hold the directive that would change
			// the verdict.
			s.unread = true
			w.note(d.at, "", "include "+d.args[1]+" is not among the files: give it to check too")
		}
	}
	// What a condition sets is not known here.
	for _, d := range block {
		for _, in := range d.block {
			if d.args[0] == "if" && in.args[0] == "set" {
				delete(s.set, in.arg())
			}
		}
	}
	if s.writes = max(s.writes, writesIn(block)); s.block == "server" {
		s.served = s.writes
	}
	for _, d := range block {
		if m, ok := nginxModules[d.args[0]]; ok && len(d.args) > 1 {
			w.pass(d, m, s)
		}
		if d.block != nil && !slices.Contains(nginxTables, d.args[0]) {
			w.block(d.block, s.within(d))
		}
	}
}

// note says once what cannot be judged.
func (w *nginxWalk) note(at policyfile.Position, dependency, message string) {
	if w.told.first(at.File, message) {
		w.r.unjudged(at, dependency, "%s", message)
	}
}

// unless is what a default depends on besides: the includes that were not read.
func (s nginxScope) unless() string {
	if s.unread {
		return ", unless an include that was not read says otherwise"
	}
	return ""
}

// within returns the scope of a block inside of s.
func (s nginxScope) within(d directive) nginxScope {
	s.block = d.args[0]
	switch s.block {
	case "stream":
		s.stream = true
	case "server":
		s.path, s.udp = serverPath(d.block)
	case "location":
		// What keeps methods out of a location does not hold for those within it.
		s.writes = s.served
		s.path = strings.TrimSpace(s.path + " " + strings.Join(d.args[1:], " "))
	case "limit_except":
		// What it contains is for the methods that it does not name.
		s.writes = writesArrive
	}
	return s
}

// serverPath names a server by its names and addresses. udp reports that it listens
// to nothing else.
func serverPath(block []directive) (path string, udp bool) {
	var names, addresses []string
	udp = true
	for _, d := range block {
		switch {
		case d.args[0] == "server_name" && len(names) == 0:
			names = d.args[1:]
		case d.args[0] == "listen" && len(d.args) > 1:
			addresses = append(addresses, d.args[1])
			udp = udp && slices.Contains(d.args, "udp")
		}
	}
	return strings.Join(append(slices.Clone(names), addresses...), " "), udp && len(addresses) > 0
}

// harmless reports whether an included file is one of those that come with nginx,
// or with a certificate, and say nothing of retries.
func harmless(pattern string) bool {
	base := pattern[strings.LastIndexByte(pattern, '/')+1:]
	return slices.Contains([]string{"mime.types", "fastcgi.conf", "fastcgi-php.conf", "koi-utf", "koi-win", "win-utf", "options-ssl-nginx.conf"}, base) ||
		strings.HasSuffix(base, "_params") || strings.Contains(pattern, "modules")
}

// setElsewhere notes the retries that a file sets for others, none of which is here.
func (w *nginxWalk) setElsewhere(block []directive) {
	for _, d := range block {
		if strings.Contains(d.args[0], "_next_upstream") && nginxInherits(d.args[0]) && d.arg() != "off" {
			w.note(d.at, "", d.args[0]+" applies where this file is included: no such file that proxies requests is here")
		}
		w.setElsewhere(d.block)
	}
}

func passes(d directive) bool {
	_, ok := nginxModules[d.args[0]]
	return ok || slices.ContainsFunc(d.block, passes)
}
