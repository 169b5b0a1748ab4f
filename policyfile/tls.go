package policyfile

import (
	"net"
	"strings"

	"go.yaml.in/yaml/v4"

	names "github.com/forbear-go/forbear/internal/enum"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// TLS says how a dependency proves who it is, and the gateway to it. The zero value
// trusts the system's authorities and shows no certificate. Verification has no
// setting: it cannot be switched off.
type TLS struct {
	// CA is a file with the authorities to trust, in place of the system's. Files
	// are PEM, and are beside the policy file unless their path says otherwise.
	CA string `json:"ca,omitzero"`
	// Cert and Key are files with the certificate that the gateway shows.
	Cert string `json:"cert,omitzero"`
	Key  string `json:"key,omitzero"`
	// ServerName is what the dependency's certificate is for; "" means the host of
	// its address.
	ServerName string `json:"server_name,omitzero"`
	// MinVersion is "1.2" or "1.3"; "" means 1.2.
	MinVersion string `json:"min_version,omitzero"`
}

// ListenerTLS makes the gateway speak TLS to its callers. The zero value does not.
type ListenerTLS struct {
	Cert string `json:"cert,omitzero"`
	Key  string `json:"key,omitzero"`
	// ClientCA is a file with the authorities of the callers, who then need a
	// certificate.
	ClientCA   string `json:"client_ca,omitzero"`
	MinVersion string `json:"min_version,omitzero"`
}

// HTTP2 says when a dependency is spoken to in HTTP/2.
type HTTP2 uint8

const (
	// HTTP2Auto is where the handshake of TLS agrees on it.
	HTTP2Auto HTTP2 = iota
	// HTTP2Off is never.
	HTTP2Off
	// HTTP2Only is always, in clear too.
	HTTP2Only
)

var http2Names = []string{"auto", "off", "only"}

// String returns the word of a policy file.
func (h HTTP2) String() string { return names.Name(http2Names, uint8(h)) }

// MarshalText implements [encoding.TextMarshaler].
func (h HTTP2) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *HTTP2) UnmarshalText(text []byte) error {
	i, err := names.Parse("http2", http2Names, text)
	*h = HTTP2(i)
	return err
}

// tls reads the section of a dependency. The field verify exists to be refused when
// it is off: an unknown key would leave its author looking for the right
// spelling.
func (r *policyReader) tls(n *yaml.Node, dep *Dependency) {
	t := &dep.TLS
	before := r.Count()
	r.section(n, "tls", t, fields{
		"server_name": func(v *yaml.Node) { r.serverName(v, &t.ServerName) },
		"min_version": func(v *yaml.Node) { r.tlsVersion(v, "tls.min_version", &t.MinVersion) },
		"verify": func(v *yaml.Node) {
			verify := true
			r.Flag(v, "tls.verify", &verify)
			if !verify {
				r.refuse(r.At(v), "R-9", r.owner, "tls.verify", "%s: tls.verify cannot be turned off: name the authority with tls.ca", r.owner)
			}
		},
	})
	if r.Count() == before && (t.Cert == "") != (t.Key == "") {
		r.Fault(n, "tls needs both cert and key, or neither")
	}
}

// secured refuses settings of TLS without https, which would look like a protection.
func (d *decoder) secured(dep *Dependency) {
	if at, _ := dep.Place("tls"); dep.TLS != (TLS{}) && strings.HasPrefix(strings.ToLower(dep.URL), "http://") {
		d.FaultAt(at, "%s: tls needs an https url, and this one is http", dep.Name)
	}
}

// listenerTLS reads the gateway's own.
func (d *decoder) listenerTLS(n *yaml.Node, into *ListenerTLS) {
	before := d.Count()
	known := d.values("gateway.tls.", into)
	known["min_version"] = func(v *yaml.Node) { d.tlsVersion(v, "gateway.tls.min_version", &into.MinVersion) }
	d.Keys(n, "gateway.tls", known)
	if d.Count() == before && (into.Cert == "" || into.Key == "") {
		d.Fault(n, "gateway.tls needs cert and key")
	}
}

// tlsVersion reads the least version of TLS. Those before 1.2 are broken (RFC 8996).
func (d *decoder) tlsVersion(v *yaml.Node, what string, into *string) {
	words := []string{"1.2", "1.3"}
	if i, ok := d.Choice(v, what, words...); ok {
		*into = words[i]
	}
}

// serverName reads a host name or an address, without a port.
func (d *decoder) serverName(v *yaml.Node, into *string) {
	s := ""
	d.Text(v, "tls.server_name", &s)
	switch {
	case s == "": // a fault already
	case net.ParseIP(s) == nil && strings.ContainsFunc(s, notInName):
		d.Fault(v, "tls.server_name is %s: want a host name without a port", strict.Quote(s))
	default:
		*into = s
	}
}
