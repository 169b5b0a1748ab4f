package webhook

import (
	"net/url"
	"strings"
)

// TLS says how an endpoint proves who it is, and forbear to it. CA, Cert and Key are
// references ("env:NAME", "file:NAME") to PEM, and are looked up again while they are used:
// what changes there is used within a second. No setting accepts a certificate unverified
//
type TLS struct {
	// CA refers to the authorities to trust, in place of the system's.
	CA string `json:"ca,omitempty"`
	// Cert refers to the certificate that is shown to an endpoint that asks for one,
	// with those up to its authority, and Key to its key. They may name the same.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// ServerName is the name that the endpoint's certificate is for, where it is not the
	// host of the URL.
	ServerName string `json:"server_name,omitempty"`
}

// check refuses settings that could not work. It does not open what the references name.
func (t *TLS) check(address string) error {
	f := faults{of: "endpoint"}
	if t == nil {
		return nil
	}
	u, err := url.Parse(address)
	f.when(err == nil && u.Scheme != "https", "tls: the url is not https")
	f.when(*t == TLS{}, "tls: it says nothing: want ca, cert and key, or server_name")
	for _, r := range []struct{ name, ref string }{{"ca", t.CA}, {"cert", t.Cert}, {"key", t.Key}} {
		f.when(r.ref != "" && !IsRef(r.ref), "tls.%s: want a reference (env:NAME, file:NAME)", r.name)
	}
	f.when((t.Cert == "") != (t.Key == ""), "tls: cert and key belong together, one of them is missing")
	f.when(t.ServerName != "" && (!visible(t.ServerName, 253) || strings.ContainsAny(t.ServerName, "/*@?#%")), "tls.server_name is no name of a host")
	return f.join()
}
