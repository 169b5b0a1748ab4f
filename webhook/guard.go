package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrBlocked refuses an address that webhooks may not reach.
var ErrBlocked = errors.New("address not allowed")

// Guard keeps webhooks away from the inside of a network. It looks at the
// address that is about to be connected to, after the name was resolved, on
// every attempt: neither odd spellings of an address nor a name that resolves
// differently the second time get around it. The zero value allows public
// addresses only.
type Guard struct {
	// Allow lists prefixes that are let through all the same, for development
	// and for receivers inside.
	Allow []netip.Prefix
	// Flag names the setting behind Allow, such as --allow-target: errors say what to
	// add to it. Without one they do not.
	Flag string

	inside bool // nothing else
}

// Inside returns a guard that lets through what g allows beyond public addresses, and
// nothing else: for requests sent in clear.
func (g Guard) Inside() Guard {
	g.inside = true
	return g
}

// blocked lists what is not public beyond what netip knows: the special-purpose
// registries of IANA.
var blocked = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
	"168.63.129.16/32", // the host of a machine in Azure, for all of its tenants
	"2001::/23", "2001:db8::/32", "3fff::/20",
)

// unicast is what IANA has allotted of IPv6 for the internet. What is outside of it is
// special, such as the addresses that stand for one of IPv4 (::ffff:0:0/96, ::ffff:0:0:0/96,
// ::/96), or not allotted.
var unicast = netip.MustParsePrefix("2000::/3")

// embedding lists prefixes whose addresses hold an IPv4 address that the
// network may forward to: NAT64 in its last four bytes, 6to4 in bytes 2 to 5.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixto4 = netip.MustParsePrefix("2002::/16")
)

// prefixes parses prefixes that are written in the code.
func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// Check refuses, with [ErrBlocked], an address that is not public and not allowed.
func (g Guard) Check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, p := range g.Allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if g.inside {
		return fmt.Errorf("%w: %v is public: use https", ErrBlocked, ip)
	}
	switch {
	case public(ip):
		return nil
	case g.Flag == "":
		return fmt.Errorf("%w: %v is not public", ErrBlocked, ip)
	}
	return fmt.Errorf("%w: %v is not public: allow it with %s %v", ErrBlocked, ip, g.Flag, netip.PrefixFrom(ip, ip.BitLen()))
}

// public reports whether ip belongs to the internet. An IPv4 address
// within an IPv6 one counts as what it is, or a translator would lead inside.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range blocked {
		if p.Contains(ip) {
			return false
		}
	}
	b := ip.As16()
	switch {
	case nat64.Contains(ip):
		return public(netip.AddrFrom4([4]byte(b[12:])))
	case sixto4.Contains(ip):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return ip.Is4() || unicast.Contains(ip)
}

// CheckURL refuses a URL that is not a plain http or https address, and one
// whose host is a forbidden address, in any spelling: early, so that it is
// refused when the endpoint is made and not hours later.
func (g Guard) CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%w url: it cannot be parsed: want one such as https://hooks.example.com/orders", ErrInvalid)
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || host == "":
		return fmt.Errorf("%w url: want https:// or http:// and a host, such as https://hooks.example.com/orders", ErrInvalid)
	case u.User != nil:
		return fmt.Errorf("%w url: it has credentials: put them into auth", ErrInvalid)
	case u.Fragment != "":
		return fmt.Errorf("%w url: it has a fragment, which is never sent: remove the # and what follows", ErrInvalid)
	case !port(u.Port()):
		return fmt.Errorf("%w url: the port is outside 1-65535", ErrInvalid)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return g.Check(ip)
	}
	if numeric(host) {
		return fmt.Errorf("%w: host %q is a disguised number: write the IP address or a name", ErrBlocked, host)
	}
	if h := strings.ToLower(strings.TrimSuffix(host, ".")); h == "localhost" || strings.HasSuffix(h, ".localhost") {
		return g.Check(netip.MustParseAddr("127.0.0.1"))
	}
	return nil
}

// port reports whether s is a port, or none.
func port(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// numeric reports whether some resolver may read host as an IPv4 address:
// its last label is a number, decimal, octal or hexadecimal.
func numeric(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// control runs between the resolution of a name and the connection, once for
// each address that is tried.
func (g Guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrBlocked, address)
	}
	return g.Check(addr.Addr())
}

// Transport returns a transport that connects only where g allows, uses no
// proxy, and verifies certificates. A proxy would be connected to instead of the
// address that is checked. Connections are kept, up to 128 idle ones for each host.
func (g Guard) Transport(connect time.Duration) *http.Transport {
	d := &net.Dialer{Timeout: connect, ControlContext: g.control}
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    connect,
		MaxIdleConns:           2048,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		// Of a connection over HTTP/2 that has died without a word nothing else is
		// heard: all attempts would be made on it, each to its timeout. One whose other side
		// floods it and reads nothing would be kept for as long as it does.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: time.Minute},
	}
}
