package foreign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// nginxUnit is one place that requests are passed on from, with what holds there.
type nginxUnit struct {
	*nginxWalk
	nginxScope
	module   nginxModule
	dep      policyfile.Dependency
	upstream *nginxUpstream
	attempt  time.Duration
	refused  bool // R-9 is
	dashed   bool // the settings are those of ingress-nginx
}

// name is a directive of the unit's module, as the file writes it.
func (u *nginxUnit) name(directive string) string {
	name := u.module.prefix + "_" + directive
	if u.dashed {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// pass judges one place that requests are passed on from. Places with the same
// address and the same directives above them are one.
func (w *nginxWalk) pass(pass directive, m nginxModule, s nginxScope) {
	// Only a stream has a proxy_pass in the server's own block.
	s.stream = s.stream || m.prefix == "proxy" && s.block == "server"
	scheme, host := nginxAddress(s.value(pass.args[1]))
	u := &nginxUnit{nginxWalk: w, nginxScope: s, module: m, upstream: w.upstream(host, s.stream)}
	u.dep = policyfile.Dependency{Name: host, Service: u.upstream.host, At: pass.at, Protocol: "http"}
	if s.stream {
		u.dep.Protocol = "tcp"
	}
	key := []string{fmt.Sprint(pass.at.File, "\x00", w.root.name, scheme, "\x00", host, m, s.stream, s.udp, s.writes, u.keeps() > notKept)}
	for _, name := range []string{"next_upstream", "next_upstream_tries", "next_upstream_timeout", "read_timeout", "connect_timeout", "ssl", "ssl_verify"} {
		if d, ok := u.get(name); ok {
			key = append(key, fmt.Sprint(name, d.at))
			if len(d.path) > len(u.dep.Route) {
				u.dep.Route = d.path
			}
		}
	}
	if !w.told.first(strings.Join(key, "\x00")) {
		return
	}
	if m.prefix != "proxy" || scheme == m.tls {
		u.dep.Route = strings.TrimSpace(u.dep.Route + " " + scheme)
	}
	u.judge(scheme)
}

// get returns a directive of the unit's module. Streams connect, and do not read.
func (u *nginxUnit) get(name string) (nginxSetting, bool) {
	if (name == "connect_timeout" || name == "ssl") && !u.stream || name == "read_timeout" && u.stream {
		return nginxSetting{}, false
	}
	d, ok := u.set[u.module.prefix+"_"+name]
	return d, ok
}

func (u *nginxUnit) judge(scheme string) {
	d := &u.dep
	when, said := u.get("next_upstream")
	words, at := []string{"error", "timeout"}, d.At
	if said {
		words, at = when.args[1:], when.at
	}
	tries, from, open := u.tries(at)
	if slices.Contains(words, "off") || u.stream && u.udp {
		tries, open = 1, false
	}
	retries(d, tries-1, from)
	u.verifies(scheme)
	u.attempt = u.duration("per_attempt", "read_timeout")
	if u.stream {
		u.attempt = u.duration("per_attempt", "connect_timeout")
	}
	d.Policy.PerAttempt, d.Longest = u.attempt, saturated(float64(tries), u.attempt)
	if open {
		d.AtLeast = true
		u.opened()
	}
	if u.repeats(words) {
		d.AtLeast, open = true, true
	}
	if !d.Policy.Disabled {
		u.nextUpstream(words, at)
	} else {
		d.Lacks = append(d.Lacks, "budget", "total.missing")
		if open {
			u.maybe(words, at)
		}
	}
	if d.Policy.Disabled && !open && !u.refused {
		// A place that retries nothing needs one row, whatever directives it has.
		if !u.told.first(d.At.File, d.Name, d.Longest) {
			u.r.quiet(d.At)
			return
		}
	}
	u.r.add(*d)
}

// opened notes why the tries cannot be counted. Of names, which most files have, that
// is said once a file.
func (u *nginxUnit) opened() {
	d, limit := &u.dep, u.module.prefix+"_next_upstream_tries"
	if !u.upstream.named {
		u.note(d.At, d.Name, fmt.Sprintf("%s %s: without %s each address is tried", d.Name, u.upstream.open, limit))
	} else if u.told.first(d.At.File, "names") {
		u.r.unjudged(d.At, d.Name, "%s %s, and without %s each of them is tried: the same applies to every name in this file", d.Name, u.upstream.open, limit)
	}
}

// verifies judges TLS: nginx does not verify certificates unless asked to.
func (u *nginxUnit) verifies(scheme string) {
	verify, ok := u.get("ssl_verify")
	on := scheme != "" && scheme == u.module.tls
	if tls, ok := u.get("ssl"); ok && u.stream {
		on = tls.arg() == "on"
	}
	name := u.module.prefix + "_ssl_verify"
	switch {
	case ok && unset(verify.arg()):
		u.note(verify.at, u.dep.Name, name+" is a template variable: whether certificates are verified is unknown")
	case ok && verify.arg() == "on":
		if on && !u.dep.Policy.Disabled {
			u.r.cannot(&u.dep, "R-9", "", "nginx tries the next server even when a certificate is refused")
		}
	case on && ok:
		u.refused = true
		u.r.refuse(verify.at, "R-9", &u.dep, "tls.verify", "%s is off: any certificate is accepted", name)
	case on:
		u.refused = true
		u.r.refuse(u.dep.At, "R-9", &u.dep, "tls.verify", "%s is off, the default%s: any certificate is accepted", name, u.unless())
	case strings.HasPrefix(scheme, "$") && u.module.tls != "":
		u.note(u.dep.At, u.dep.Name, fmt.Sprintf("%s is called with the scheme %s: with %s no certificate is verified", u.dep.Name, scheme, u.module.tls))
	}
}

// duration returns a time-out, or its default.
func (u *nginxUnit) duration(field, name string) time.Duration {
	d, ok := u.get(name)
	if !ok {
		return nginxTimeout
	}
	u.dep.SetPlace(field, d.at)
	t, ok := nginxTime(d.arg())
	if !ok {
		u.unread(d)
		return nginxTimeout
	}
	return t
}

// unread notes a value that a template fills in.
func (u *nginxUnit) unread(d nginxSetting) {
	u.note(d.at, u.dep.Name, fmt.Sprintf("%s %s is unknown here", d.args[0], d.arg()))
}
