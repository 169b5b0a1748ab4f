package policyfile

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Addresses are those that the gateway listens on. In the file a single one is
// text, and several are a list. Each is a host and port, "unix:" with the path of a
// socket, or "systemd:" with or without the name of a socket that systemd passes.
type Addresses []string

// node writes a single address as text, as people write it.
func (a Addresses) node() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, address := range a {
		n := plain(address)
		n.Style = yaml.DoubleQuotedStyle
		list.Content = append(list.Content, n)
	}
	if len(a) == 1 {
		return list.Content[0]
	}
	return list
}

// addresses reads one address or a list. The same one twice is a fault: the second
// could not be opened.
func (d *decoder) addresses(v *yaml.Node, into *Addresses) {
	nodes := []*yaml.Node{v}
	if v = strict.Resolve(v); v.Kind == yaml.SequenceNode {
		if nodes = d.Items(v, "gateway.listen"); len(nodes) == 0 {
			d.Fault(v, "gateway.listen is an empty list")
		}
	}
	for _, n := range nodes {
		address, ok := d.address(n)
		switch {
		case !ok:
		case slices.Contains(*into, address):
			d.Fault(n, "gateway.listen has %s twice", strict.Quote(address))
		default:
			*into = append(*into, address)
		}
	}
}

// address reads one address. The host may be empty, which means all interfaces.
func (d *decoder) address(n *yaml.Node) (string, bool) {
	want := "an address such as 127.0.0.1:8080"
	s, ok := d.Scalar(n, "gateway.listen", want)
	if !ok {
		return "", false
	}
	if strings.HasPrefix(s, "unix:") {
		want = fmt.Sprintf("a path of at most %d bytes, such as unix:/run/forbear/gateway.sock", maxSocketPath)
	}
	if !listenable(s) {
		d.Fault(n, "gateway.listen is %s: want %s", strict.Quote(s), want)
		return "", false
	}
	return s, true
}

// maxSocketPath is the longest path of a socket that every system takes, in bytes.
const maxSocketPath = 103

// listenable reports whether a gateway could listen on s. Whether the place is free is
// found out when it is opened.
func listenable(s string) bool {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return path != "" && path != "@" && len(path) <= maxSocketPath && !strings.ContainsFunc(path, label.Control)
	}
	if name, ok := strings.CutPrefix(s, "systemd:"); ok {
		return len(name) <= 255 && !strings.Contains(name, ":") && !strings.ContainsFunc(name, label.Control)
	}
	_, port, err := net.SplitHostPort(s)
	return err == nil && isPort(port)
}

// maxProxies bounds how many prefixes a file may name: each request of a peer is
// held against them.
const maxProxies = 1000

// Trusts reports whether the gateway believes what a peer says of the caller. An
// IPv4 address counts the same in its IPv6 form. No address is trusted where none
// is named.
func (g Gateway) Trusts(peer netip.Addr) bool {
	peer = peer.Unmap()
	return slices.ContainsFunc(g.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// proxies reads addresses and prefixes, each once. Names are refused: what they
// resolve to may change, and whoever answers for the name could be trusted then.
func (d *decoder) proxies(n *yaml.Node, into *[]netip.Prefix) {
	const what = "a member of gateway.trusted_proxies"
	const want = "an address or a prefix such as 10.0.0.0/8"
	for i, item := range d.Items(n, "gateway.trusted_proxies") {
		if i == maxProxies {
			d.Fault(item, "gateway.trusted_proxies has more than %d members", maxProxies)
			return
		}
		s, ok := d.Scalar(item, what, want)
		if !ok {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if a, addrErr := netip.ParseAddr(s); addrErr == nil && a.Zone() == "" {
			a = a.Unmap()
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil || p.Addr().Is4In6():
			d.Fault(item, "%s is %s: want %s", what, strict.Quote(s), want)
		case p != p.Masked():
			d.Fault(item, "%s is %s, whose last bits do not count: write %s, or %s for that address alone", what, p, p.Masked(), p.Addr())
		case !slices.Contains(*into, p):
			*into = append(*into, p)
		}
	}
}
