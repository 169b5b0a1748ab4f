package policyfile

import (
	"net/url"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Credentials says where the gateway finds the Authorization for requests to a
// dependency that bring none. It holds the places of secrets, never a secret.
// The zero value means that the gateway has none: it passes on what callers
// send.
type Credentials struct {
	// Secret is where a whole value is, such as "Bearer ...".
	Secret Secret `json:"secret,omitzero"`
	// TokenURL is where a token is had for ClientID and ClientSecret (OAuth 2.0,
	// client credentials), in place of Secret.
	TokenURL     string   `json:"token_url,omitzero"`
	ClientID     string   `json:"client_id,omitzero"`
	ClientSecret Secret   `json:"client_secret,omitzero"`
	Scopes       []string `json:"scopes,omitempty"`
	// Override replaces what callers send, too.
	Override bool `json:"override,omitzero"`
}

// Secret is the place of a secret: an environment variable or a file. One of
// the two is set, or neither.
type Secret struct {
	Env  string `json:"env,omitzero"`
	File string `json:"file,omitzero"`
}

// credentials reads the section of that name. The fields are compared with
// each other only when each of them could be read: a fault in one of them
// would otherwise cause a second one.
func (r *policyReader) credentials(n *yaml.Node, dep *Dependency) {
	c := &dep.Credentials
	before := r.Count()
	r.section(n, "credentials", c, fields{
		"secret":        func(v *yaml.Node) { r.reference(v, "credentials.secret", &c.Secret) },
		"token_url":     func(v *yaml.Node) { r.tokenURL(v, &c.TokenURL) },
		"client_secret": func(v *yaml.Node) { r.reference(v, "credentials.client_secret", &c.ClientSecret) },
		"scopes":        func(v *yaml.Node) { c.Scopes = r.scopes(v) },
	})
	if r.Count() > before {
		return
	}
	none := Secret{}
	switch {
	case c.TokenURL == "" && (c.ClientID != "" || c.ClientSecret != none || len(c.Scopes) > 0):
		r.Fault(n, "credentials: client_id, client_secret and scopes need token_url")
	case c.TokenURL == "" && c.Secret == none:
		r.Fault(n, "credentials need secret, or token_url with client_id and client_secret")
	case c.TokenURL != "" && c.Secret != none:
		r.Fault(n, "credentials have both secret and token_url: set only one")
	case c.TokenURL != "" && (c.ClientID == "" || c.ClientSecret == none):
		r.Fault(n, "credentials with token_url need client_id and client_secret")
	}
}

// reference takes the place of a secret. A secret in clear is refused under
// R-9, and its text does not reach the message.
func (r *policyReader) reference(n *yaml.Node, what string, into *Secret) {
	if strict.Resolve(n).Kind == yaml.ScalarNode {
		r.refuse(r.At(n), "R-9", r.owner, what, "%s of %s is in clear: write {env: NAME} or {file: PATH}", what, r.owner)
		return
	}
	r.Keys(n, what, fields{
		"env":  func(v *yaml.Node) { r.env(v, what+".env", &into.Env) },
		"file": func(v *yaml.Node) { r.Text(v, what+".file", &into.File) },
	})
	// Neither is allowed to win silently: a rotated secret would be the
	// wrong one.
	if into.Env != "" && into.File != "" {
		r.Fault(n, "%s has both env and file: set only one", what)
	}
}

// tokenURL reads an address that the client's secret is sent to. Plain http
// is allowed to this machine alone: there the secret crosses no network.
func (r *policyReader) tokenURL(n *yaml.Node, into *string) {
	const what, want = "credentials.token_url", "an address such as https://auth.internal/token"
	r.url(n, what, want, r.owner, into)
	if u, err := url.Parse(*into); err == nil && u.Scheme == "http" && !loopback.Host(u.Hostname()) {
		r.refuse(r.At(n), "R-9", r.owner, what, "%s of %s is not https, so the client's secret would be sent in clear: use https", what, r.owner)
		*into = ""
	}
}

// maxScopes bounds how many scopes are asked for: they travel in one form
// field of the token request.
const maxScopes = 64

// scopes reads the scopes of a token request. RFC 6749 section 3.3 separates
// them by spaces, so that a space inside one would ask for two.
func (r *policyReader) scopes(n *yaml.Node) (found []string) {
	items := r.Items(n, "credentials.scopes")
	if len(items) > maxScopes {
		r.Fault(n, "credentials.scopes has %d entries: want at most %d", len(items), maxScopes)
		return nil
	}
	for _, item := range items {
		scope := ""
		r.Text(item, "a scope", &scope)
		switch {
		case scope == "": // a fault already
		case strings.ContainsAny(scope, " \"\\"):
			r.Fault(item, "a scope is %s: want one word", strict.Quote(scope))
		default:
			found = append(found, scope)
		}
	}
	return found
}
