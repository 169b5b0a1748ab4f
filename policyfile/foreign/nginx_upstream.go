package foreign

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// nginxUpstream is a group of servers.
type nginxUpstream struct {
	name string
	// servers counts the addresses that are tried for one request: those of backup
	// servers too, and none of a server that is down.
	servers int
	// open says why there may be more, or "".
	open string
	// named says that it is since servers have names.
	named bool
	// host is the name that all servers have, or "".
	host string
	// keepalive is what the directive of that name says: how many connections are kept
	// for more requests. Without a word there are some since nginx 1.29.7.
	keepalive string
	explicit  bool // an upstream block, and no address
	at        policyfile.Position
	used      bool // requests are passed on to it
}

// findUpstreams collects the upstreams below a block, by context and name, whose case
// does not matter: streams have their own.
func findUpstreams(block []directive, context string, into map[string]*nginxUpstream) {
	for _, d := range block {
		switch {
		case d.args[0] == "upstream" && len(d.args) > 1:
			into[context+strings.ToLower(d.args[1])] = readUpstream(d)
		case d.args[0] == "stream":
			findUpstreams(d.block, "stream ", into)
		case d.args[0] == "http":
			findUpstreams(d.block, "", into)
		}
	}
}

// readUpstream counts the servers of an upstream. How requests are shared out among
// them, and when one of them counts as failed, does not change that each may be
// tried.
func readUpstream(d directive) *nginxUpstream {
	u := &nginxUpstream{name: d.args[1], at: d.at, explicit: true}
	var names []string
	for _, s := range d.block {
		switch {
		case s.args[0] == "include":
			u.open = "includes " + s.arg() + ", which is not among the files"
		case s.args[0] == "keepalive":
			u.keepalive = s.arg()
		case strings.HasPrefix(s.args[0], "balancer_by_lua"):
			u.open = "has a balancer in Lua"
		case s.args[0] == "server" && len(s.args) > 1 && !slices.Contains(s.args, "down"):
			u.servers++
			host := hostOnly(s.args[1])
			names = append(names, host)
			if !isAddress(host) {
				u.named = true
			}
		}
	}
	if u.named = u.named && u.open == ""; u.named {
		u.open = "has servers by name, and a name may have several addresses"
	}
	names = slices.Compact(names)
	if len(names) == 1 && !isAddress(names[0]) && !unset(names[0]) {
		u.host = names[0]
	}
	if u.servers == 0 && u.open == "" {
		u.open = "has no server in the files"
	}
	return u
}

// hostOnly cuts off a port.
func hostOnly(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.HasSuffix(address, "]") && !strings.HasSuffix(address, "}") {
		return address[:i]
	}
	return address
}

// isAddress reports whether a host is one address, and not a name of which there
// may be several.
func isAddress(host string) bool {
	if strings.HasPrefix(host, "unix:") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// upstream finds what an address stands for: an upstream of the same tree, or the
// only one of that name, or a single server.
func (w *nginxWalk) upstream(host string, stream bool) *nginxUpstream {
	plain := strings.ToLower(host)
	name := plain
	if stream {
		name = "stream " + plain
	}
	if u := w.root.upstreams[name]; u != nil {
		u.used = true
		return u
	}
	var found []*nginxUpstream
	for _, root := range w.roots {
		// A file that stands for itself does not say what it is included in.
		if u := root.upstreams[name]; u != nil {
			found = append(found, u)
		} else if u := root.upstreams[plain]; u != nil {
			found = append(found, u)
		}
	}
	switch {
	case len(found) == 1:
		found[0].used = true
		return found[0]
	case len(found) > 1:
		for _, u := range found {
			u.used = true
		}
		return &nginxUpstream{servers: 1, open: "is an upstream of several files, and which one is meant is unclear"}
	case strings.Contains(host, "$"):
		w.variable = true
		return &nginxUpstream{servers: 1, open: "is known only while nginx runs", explicit: w.keepsSome()}
	case !isAddress(hostOnly(host)):
		return &nginxUpstream{servers: 1, named: true, open: "is a name and may have several addresses"}
	}
	return &nginxUpstream{servers: 1}
}

// keepsSome reports whether there is an upstream that connections may be kept to: a variable
// may mean any of them.
func (w *nginxWalk) keepsSome() bool {
	for _, root := range w.roots {
		for _, u := range root.upstreams {
			if u.keepalive != "0" {
				return true
			}
		}
	}
	return false
}

// unused notes the upstreams of a tree that no place among the files passes requests
// on to: where that is done, their servers are tried one after the other.
// A variable may mean any of them, and is noted itself.
func (w *nginxWalk) unused(root *nginxTree) {
	if w.variable {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(root.upstreams)) {
		if u := root.upstreams[name]; !u.used && (u.servers > 1 || u.open != "") {
			w.note(u.at, u.name, fmt.Sprintf("nothing in these files proxies requests to %s, where its retries are set", u.name))
		}
	}
}

// nginxVariable matches a variable in an argument.
var nginxVariable = regexp.MustCompile(`\$(\w+|\{\w+\})`)

// value fills in the variables that are set to a text above.
func (s *nginxScope) value(text string) string {
	for range 5 {
		before := text
		text = nginxVariable.ReplaceAllStringFunc(text, func(v string) string {
			if d, ok := s.set["$"+strings.Trim(v, "${}")]; ok {
				return d.args[2]
			}
			return v
		})
		if text == before || len(text) > 1000 {
			break
		}
	}
	return text
}

// nginxAddress splits an address, with or without a scheme and a path. A socket's
// path ends at a colon.
func nginxAddress(address string) (scheme, host string) {
	scheme, rest, ok := strings.Cut(anonymous(address), "://")
	if !ok {
		scheme, rest = "", scheme
	}
	if !strings.HasPrefix(scheme, "$") { // a variable's case matters
		scheme = strings.ToLower(scheme)
	}
	if path, ok := strings.CutPrefix(rest, "unix:"); ok {
		path, _, _ = strings.Cut(path, ":")
		return scheme, "unix:" + path
	}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	if path := nginxPathVariable.FindStringIndex(rest); path != nil {
		rest = rest[:path[0]]
	}
	return scheme, rest
}

// nginxPathVariable matches the variables that begin with the slash of a path, or with a
// question mark, and end the host as those do.
var nginxPathVariable = regexp.MustCompile(`\$(request_uri|uri|document_uri|is_args)\b|\$\{(request_uri|uri|document_uri|is_args)\}`)

// kept is whether connections to an upstream are kept for more requests.
type kept int

const (
	notKept    kept = iota
	keptOfLate      // since nginx 1.29.7, and not before
	keptAlways
)

// keeps reads what decides on it. Since 1.29.7 nginx keeps connections to every upstream
// block, and speaks HTTP/1.1 to it without the header that ends them. Before, both had
// to be said.
func (u *nginxUnit) keeps() kept {
	version, said := u.get("http_version")
	conn, _ := u.get("keep_conn")
	early := u.upstream.keepalive != ""
	switch u.module.prefix {
	case "proxy":
		if u.connection == "close" || said && version.arg() == "1.0" {
			return notKept
		}
		early = early && said && (u.connection == "set" || version.arg() == "2")
	case "fastcgi":
		if !slices.Contains(conn.args, "on") {
			return notKept
		}
	case "uwsgi", "scgi":
		return notKept
	}
	switch {
	case u.stream || !u.upstream.explicit || u.upstream.keepalive == "0":
		return notKept
	case early:
		return keptAlways
	}
	return keptOfLate
}

// repeats notes, once a file, that a request which fails on a kept connection is sent
// once more: nginx counts no try for such a failure, whatever the limit on tries.
func (u *nginxUnit) repeats(words []string) bool {
	when := u.keeps()
	if when == notKept || !slices.Contains(words, "error") || slices.Contains(words, "off") {
		return false
	}
	if u.told.first(u.dep.At.File, "kept") {
		since := ""
		if when == keptOfLate {
			since = "since nginx 1.29.7 "
		}
		u.r.unjudged(u.dep.At, u.dep.Name, "%sconnections to %s are kept alive: a request that fails on one is sent again, beyond all tries, once for each such connection", since, u.dep.Name)
	}
	return true
}
