package chart

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/forbear-go/forbear/webhook"
)

// What the NetworkPolicy lets webhooks reach is what forbear itself does (webhook.Guard): the
// one is a second wall behind the other. It is never wider, and stricter only where no one
// has been given addresses, and for those that hold another one.
func TestEgressIsTheGuards(t *testing.T) {
	var blocks []*networkingv1.IPBlock
	for _, n := range all[*networkingv1.NetworkPolicy](template(t, "-f", values("everything"))) {
		for _, rule := range n.Spec.Egress {
			for _, to := range rule.To {
				if to.IPBlock != nil && n.Name == "forbear-delivery" {
					blocks = append(blocks, to.IPBlock)
				}
			}
		}
	}
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, want IPv4, IPv6 and the allowed target", len(blocks))
	}
	guard := webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}}
	passes := func(ip netip.Addr) bool {
		for _, b := range blocks {
			in := netip.MustParsePrefix(b.CIDR).Contains(ip)
			for _, e := range b.Except {
				in = in && !netip.MustParsePrefix(e).Contains(ip)
			}
			if in {
				return true
			}
		}
		return false
	}
	// Around each edge of each prefix, and once in each /12 of IPv4 and /11 of IPv6.
	var probes []netip.Addr
	edges := func(p netip.Prefix) {
		first, last := p.Masked().Addr(), lastOf(p)
		probes = append(probes, first, last, first.Prev(), last.Next())
	}
	for _, b := range blocks {
		edges(netip.MustParsePrefix(b.CIDR))
		for _, e := range b.Except {
			edges(netip.MustParsePrefix(e))
		}
	}
	for i := range 1 << 12 {
		probes = append(probes, netip.AddrFrom4([4]byte{byte(i >> 4), byte(i << 4), 1, 1}))
		probes = append(probes, netip.AddrFrom16([16]byte{byte(i >> 4), byte(i << 4), 15: 1}))
	}
	given, sixto4 := netip.MustParsePrefix("2000::/3"), netip.MustParsePrefix("2002::/16")
	passed := 0
	for _, ip := range probes {
		if !ip.IsValid() {
			continue
		}
		got, want := passes(ip), guard.Check(ip) == nil
		stricter := ip.Is6() && !given.Contains(ip) || sixto4.Contains(ip)
		if got && !want || want && !got && !stricter {
			t.Errorf("%v passes the NetworkPolicy: %v, and the guard: %v", ip, got, want)
		}
		if got {
			passed++
		}
	}
	if passed < 1000 {
		t.Errorf("%d addresses pass", passed)
	}
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip
}
