package policyfile

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	names "github.com/forbear-go/forbear/internal/enum"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Endpoints says where the gateway's connections to a dependency go: to a list of
// addresses (host:port), or to all that the host of the URL has. The zero value is
// neither: they go where the URL says. One address in the list is fine: it is where
// the name of the URL is found.
type Endpoints struct {
	Addresses []string
	DNS       bool
}

// node writes it as the file has it: the word dns, or the list.
func (e Endpoints) node() *yaml.Node {
	if e.DNS {
		return plain("dns")
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, a := range e.Addresses {
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: a, Style: yaml.DoubleQuotedStyle})
	}
	return list
}

// maxEndpoints is as many as the gateway takes.
const maxEndpoints = 256

const wantEndpoints = "dns, or a list of addresses such as 10.0.0.1:8443"

// endpoints reads the word dns, or a list. An address that is there twice would get
// two turns, and weights are a load balancer's work.
func (r *policyReader) endpoints(n *yaml.Node, into *Endpoints) {
	n = strict.Resolve(n)
	if n.Kind == yaml.ScalarNode {
		if s, ok := r.Scalar(n, "endpoints", wantEndpoints); ok {
			if into.DNS = s == "dns"; !into.DNS {
				r.Fault(n, "endpoints is %s: want %s", strict.Quote(s), wantEndpoints)
			}
		}
		return
	}
	items := r.Items(n, "endpoints")
	if n.Kind == yaml.SequenceNode && len(items) == 0 {
		r.Fault(n, "endpoints is empty: leave it out to connect to the url's host")
	}
	first := map[string]Position{}
	for i, item := range items {
		if i == maxEndpoints {
			r.Fault(item, "endpoints has too many addresses: want at most %d", maxEndpoints)
			return
		}
		s, ok := r.Scalar(item, "an endpoint", "an address such as 10.0.0.1:8443")
		if !ok {
			continue
		}
		if at, twice := first[s]; twice {
			r.Fault(item, "endpoint %s appears twice, first on line %d", strict.Quote(s), at.Line)
			continue
		}
		if !isAddress(s) {
			r.Fault(item, "endpoint %s lacks a host or a port: want an address such as 10.0.0.1:8443", strict.Quote(s))
			continue
		}
		first[s] = r.At(item)
		into.Addresses = append(into.Addresses, s)
	}
}

// isAddress reports whether s is a host or an IP address, and a port.
func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && len(host) <= 253 && !strings.ContainsFunc(host, notInName)
}

// connectionAge reads a duration or the word off.
func (r *policyReader) connectionAge(v *yaml.Node, into *time.Duration) {
	if strict.Resolve(v).Value == "off" {
		*into = -1
		return
	}
	r.durationOr(v, "connection_age", "off, or ", into)
	if *into > 0 && *into < time.Second {
		r.Fault(v, "connection_age is %s: want at least 1s", FormatDuration(*into))
	}
}

// reached checks that the endpoints go with the URL, once the whole dependency is read.
func (r *policyReader) reached(dep *Dependency) {
	u, err := url.Parse(dep.URL)
	if !dep.Endpoints.DNS || dep.URL == "" || err != nil {
		return
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		r.FaultAt(r.place("endpoints", dep.Name).Position, "endpoints is dns, but the url's host is an address: use a host name, or leave endpoints out")
	}
}

// Probe says where a dependency reports its own health. In a file it stands in
// the section health, beside the limits of the policy. It belongs to the
// dependency and not to its policy: the gateway asks the endpoint, and a Retryer
// sends nothing by itself. The zero value asks nothing.
type Probe struct {
	Endpoint string `json:"endpoint,omitzero"`
	// Interval is the mean time between two questions; zero leaves it to
	// package probe.
	Interval time.Duration `json:"interval,omitzero"`
}

// probe reads the section of a dependency, which may name an endpoint.
func (r *policyReader) probe(n *yaml.Node, dep *Dependency) {
	p := &dep.Probe
	r.section(n, "health", &r.policy.Health, fields{
		"endpoint": func(v *yaml.Node) { r.url(v, "health.endpoint", dependencyURL, r.owner, &p.Endpoint) },
		"interval": func(v *yaml.Node) { r.duration(v, "health.interval", &p.Interval) },
	})
	// The limits are judged with the rest of the policy; no policy has these two.
	if p.Interval > 0 && p.Endpoint == "" {
		r.Fault(n, "health has an interval without an endpoint: set health.endpoint")
	}
}

// Pace says whether the gateway paces the sends to a dependency that limits its
// callers. The zero value is on.
type Pace uint8

const (
	PaceOn Pace = iota
	PaceOff
)

var paceNames = []string{"on", "off"}

// String returns the word of a policy file.
func (p Pace) String() string { return names.Name(paceNames, uint8(p)) }

// MarshalText implements [encoding.TextMarshaler].
func (p Pace) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Pace) UnmarshalText(text []byte) error {
	i, err := names.Parse("pace", paceNames, text)
	*p = Pace(i)
	return err
}
