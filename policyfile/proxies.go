package policyfile

import (
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

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
			d.Fault(item, "gateway.trusted_proxies has too many entries: want at most %d", maxProxies)
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
			d.Fault(item, "%s is %s, which has host bits set: write %s, or %s for that address alone", what, p, p.Masked(), p.Addr())
		case !slices.Contains(*into, p):
			*into = append(*into, p)
		}
	}
}
