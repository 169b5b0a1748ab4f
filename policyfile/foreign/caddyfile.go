package foreign

import (
	"bytes"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// speaksCaddy reports whether a text is a Caddyfile: by its name, or by a directive
// that is Caddy's alone.
func speaksCaddy(name string, data []byte) (bool, *policyfile.Fault) {
	called := caddyName(name)
	if !called && !bytes.Contains(data, []byte("reverse_proxy")) {
		return false, nil
	}
	p := &caddyParser{part: &Part{Name: name}, cursor: begin(caddyText(data))}
	all, fault := p.block(0)
	marked := p.marked || slices.ContainsFunc(all, func(d directive) bool { return len(d.args) > 0 && d.args[0] == "reverse_proxy" })
	if fault != nil {
		if called && marked {
			return false, fault
		}
		return false, nil
	}
	return called || marked, nil
}

// caddyName reports whether a file is called a Caddyfile.
func caddyName(name string) bool { return strings.Contains(strings.ToLower(name), "caddyfile") }

// caddyText is the Caddyfile in a test of Caddy's own, which has its JSON below a line.
func caddyText(data []byte) []byte {
	before, _, _ := bytes.Cut(data, []byte("\n----------\n"))
	return before
}

// caddyFile reads a directive of caddyProxies.
func caddyFile(d directive, route string, snippets map[string][]directive) caddyProxy {
	c := caddyProxy{at: d.at, route: route, imported: map[string]bool{}}
	to := d.args[1:]
	if len(to) > 0 && (to[0] == "*" || strings.HasPrefix(to[0], "/") || strings.HasPrefix(to[0], "@")) {
		c.route = strings.TrimSpace(route + " " + to[0])
		to = to[1:]
	}
	c.upstreams = to
	caddyOptions(&c, d.block, snippets)
	return c
}

// caddyOptions reads the block of a reverse_proxy, and the snippets that it imports.
func caddyOptions(c *caddyProxy, block []directive, snippets map[string][]directive) {
	for _, d := range block {
		if len(d.args) == 0 {
			continue
		}
		value := setting{strings.Join(d.args[1:], " "), d.at}
		switch d.args[0] {
		case "to":
			c.upstreams = append(c.upstreams, d.args[1:]...)
		case "dynamic":
			for _, option := range d.block {
				if len(option.args) > 1 && option.args[0] == "name" {
					c.upstreams = append(c.upstreams, option.args[1])
				}
			}
		case "lb_retries":
			c.retries = value
		case "lb_try_duration":
			c.duration = value
		case "lb_try_interval":
			c.interval = value
		case "lb_retry_match":
			c.matches = append(c.matches, caddyMatcher(d))
		case "transport":
			caddyTransport(c, d.block)
		case "import":
			// Once is enough: a snippet may import itself, a hundred times.
			if len(d.args) > 1 && !c.imported[d.args[1]] {
				c.imported[d.args[1]] = true
				caddyOptions(c, snippets[d.args[1]], snippets)
			}
		}
	}
}

func caddyTransport(c *caddyProxy, block []directive) {
	for _, d := range block {
		if len(d.args) == 0 {
			continue
		}
		value := setting{strings.Join(d.args[1:], " "), d.at}
		switch d.args[0] {
		case "tls_insecure_skip_verify":
			c.insecure = setting{"true", d.at}
		case "dial_timeout":
			c.dial = value
		case "response_header_timeout":
			c.header = value
		}
	}
}

// caddyMatcher reads a set of matchers, on one line or in a block.
func caddyMatcher(d directive) caddyMatch {
	m := caddyMatch{at: d.at}
	matchers := d.block
	if len(d.args) > 1 {
		matchers = []directive{{args: d.args[1:], block: d.block}}
	}
	for _, matcher := range matchers {
		switch {
		case len(matcher.args) == 0:
		case matcher.args[0] == "method":
			m.methods = append(m.methods, matcher.args[1:]...)
		case matcher.args[0] == "expression" || strings.ContainsAny(matcher.args[0], "(=<>"):
			m.texts = append(m.texts, matcher.args...)
		}
	}
	return m
}
