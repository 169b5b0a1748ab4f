package chart

import (
	"net/netip"
	"slices"
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
	type block struct {
		whole  netip.Prefix
		except []netip.Prefix
	}
	var parsed []block
	for _, b := range blocks {
		p := block{whole: netip.MustParsePrefix(b.CIDR)}
		for _, e := range b.Except {
			p.except = append(p.except, netip.MustParsePrefix(e))
		}
		parsed = append(parsed, p)
	}
	passes := func(ip netip.Addr) bool {
		return slices.ContainsFunc(parsed, func(b block) bool {
			return b.whole.Contains(ip) && !slices.ContainsFunc(b.except, func(p netip.Prefix) bool { return p.Contains(ip) })
		})
	}
	// One in each small block that IANA has set aside, the edges of each prefix of the
	// policy, and one in each /16.
	var probes []netip.Addr
	for _, ip := range []string{"192.0.0.8", "192.0.2.1", "192.88.99.1", "198.51.100.1", "203.0.113.1", "169.254.169.254", "2001:db8::1", "2001:2::1", "3fff::1", "fd00:ec2::254"} {
		probes = append(probes, netip.MustParseAddr(ip))
	}
	edges := func(p netip.Prefix) {
		first, last := p.Masked().Addr(), lastOf(p)
		probes = append(probes, first, last, first.Prev(), last.Next())
	}
	for _, b := range parsed {
		edges(b.whole)
		for _, e := range b.except {
			edges(e)
		}
	}
	for i := range 1 << 16 {
		probes = append(probes, netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 1, 1}))
		probes = append(probes, netip.AddrFrom16([16]byte{byte(i >> 8), byte(i), 15: 1}))
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
	if passed < 50_000 {
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
