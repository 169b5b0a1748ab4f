package forward

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Origin says where requests come from: to the target, by X-Forwarded-For, -Host and
// -Proto and Forwarded (RFC 7239), and to proxies on the way, by Via. What a caller
// says of it is believed of trusted proxies only; of any other caller the headers are
// replaced by what the gateway knows itself. The zero value trusts no proxy and adds no
// Via.
type Origin struct {
	Trusted []netip.Prefix
	// Pseudonym stands for this gateway in Via.
	Pseudonym string
}

// NewPseudonym returns a name for a gateway that no other has.
func NewPseudonym() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "forbear-" + hex.EncodeToString(b[:])
}

// originValues are the values of the headers of one request.
type originValues struct{ peer, host, via [1]string }

// Trusts reports whether the peer of a request is a trusted proxy.
func (o Origin) Trusts(r *http.Request) bool {
	if len(o.Trusted) == 0 {
		return false
	}
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := a.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(o.Trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Host returns what the target is told of the host that a request is for.
func (o Origin) Host(r *http.Request) string {
	if said := r.Header["X-Forwarded-Host"]; len(said) > 0 && o.Trusts(r) {
		return strings.Join(said, ", ")
	}
	return r.Host
}

// add completes h, which has the headers of r.
func (o Origin) add(h http.Header, r *http.Request, v *originValues) {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil { // a unix socket has no address
		peer = ""
	}
	if o.Trusts(r) {
		o.appendTo(h, r, peer, v)
	} else {
		o.replace(h, r, peer, v)
	}
	if o.Pseudonym == "" {
		return
	}
	v.via[0] = protocolOf(r) + " " + o.Pseudonym
	if before := h["Via"]; len(before) > 0 {
		v.via[0] = strings.Join(before, ", ") + ", " + v.via[0]
	}
	h["Via"] = v.via[:]
}

// replace says of an untrusted caller what the gateway sees itself.
func (o Origin) replace(h http.Header, r *http.Request, peer string, v *originValues) {
	for name := range h {
		if saysOrigin(name) {
			delete(h, name)
		}
	}
	if peer != "" {
		v.peer[0] = peer
		h["X-Forwarded-For"] = v.peer[:]
	}
	v.host[0] = r.Host
	h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = v.host[:], schemeOf(r)
}

// saysOrigin reports whether a header says where a request comes from, or would to a
// server that takes underscores for hyphens, as those do that make variables of headers.
func saysOrigin(name string) bool {
	const prefix = "x-forwarded-"
	if len(name) < len("Forwarded") || name[0]|0x20 != 'x' && name[0] != 'F' {
		return false
	}
	if strings.Contains(name, "_") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) ||
		strings.EqualFold(name, "X-Real-IP") || name == "Forwarded"
}

// appendTo adds the peer, which is a proxy, to what it says of those before it.
func (o Origin) appendTo(h http.Header, r *http.Request, peer string, v *originValues) {
	v.peer[0] = peer
	if before := h["X-Forwarded-For"]; len(before) > 0 {
		v.peer[0] = strings.Join(before, ", ") + ", " + peer
	}
	h["X-Forwarded-For"] = v.peer[:]
	if _, said := h["X-Forwarded-Host"]; !said {
		v.host[0] = r.Host
		h["X-Forwarded-Host"] = v.host[:]
	}
	if _, said := h["X-Forwarded-Proto"]; !said {
		h["X-Forwarded-Proto"] = schemeOf(r)
	}
	if before := h["Forwarded"]; len(before) > 0 {
		if strings.Contains(peer, ":") {
			peer = `"[` + peer + `]"`
		}
		h["Forwarded"] = []string{strings.Join(before, ", ") + ", for=" + peer + ";proto=" + schemeOf(r)[0]}
	}
}

var overTLS, inClear = []string{"https"}, []string{"http"}

// schemeOf returns the scheme that the caller used.
func schemeOf(r *http.Request) []string {
	if r.TLS != nil {
		return overTLS
	}
	return inClear
}

// protocolOf returns the received-protocol of Via (RFC 9110 section 7.6.3).
func protocolOf(r *http.Request) string {
	switch {
	case r.ProtoMajor == 2:
		return "2.0"
	case r.ProtoMinor == 0:
		return "1.0"
	default:
		return "1.1"
	}
}
