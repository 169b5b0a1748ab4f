package webhook

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// Header is one header line.
type Header = deadletter.Header

// Endpoint is a receiver of webhooks. The zero value of each field is its
// default; ID and URL are required.
type Endpoint struct {
	ID  string `json:"id"`
	URL string `json:"url"`

	// Application is the tenant whose endpoint this is, or "". It cannot be changed.
	Application string `json:"application,omitempty"`
	// Types are the types of the application's messages that the endpoint wants:
	// see [Endpoint.Subscribes]. Messages that name the endpoint itself come
	// whatever their type.
	Types []string `json:"types,omitempty"`

	// Secrets sign each attempt, all of them, so that they can be rotated: a
	// Standard Webhooks secret ("whsec_...", or without the prefix), an ed25519
	// private key ("whsk_..."), or a reference ("env:NAME", "file:PATH").
	Secrets []string `json:"secrets,omitempty"`
	// Unsigned says that attempts are not signed: without it, and without Secrets of its
	// own or of its application, an endpoint that is put gets a secret.
	Unsigned bool `json:"unsigned,omitempty"`
	// Auth is where the Authorization of each attempt comes from.
	Auth *Auth `json:"auth,omitempty"`
	// TLS has authorities and a client certificate for an https URL; nil: the system's
	// authorities and none.
	TLS *TLS `json:"tls,omitempty"`
	// Headers are sent with each attempt. Authorization is refused here: it
	// would be persisted.
	Headers []Header `json:"headers,omitempty"`
	Format  Format   `json:"format,omitempty"`

	// Policy is of kind webhook; its zero fields mean the standard's defaults.
	Policy forbear.Policy `json:"policy,omitzero"`
	// Concurrency bounds the attempts in flight. Default 10.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate bounds the attempts per second of all processes that share the store. 0 means
	// no bound.
	Rate float64 `json:"rate,omitempty"`
	// Ordered keeps the messages of one key in order: while one is being
	// retried, later ones of its key wait, and only those.
	Ordered bool `json:"ordered,omitempty"`
	// DisableAfter is how long an endpoint may fail without any success before
	// it is disabled. Default 24 h.
	DisableAfter time.Duration `json:"disable_after,omitempty"`

	// What follows is the store's and the dispatcher's.

	State EndpointState `json:"state"`
	// DisabledBy is who has disabled the endpoint, and Reason why.
	DisabledBy Party     `json:"disabled_by,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Since      time.Time `json:"since,omitzero"` // when State was entered
	// Version counts the configurations. What is put with one replaces that very
	// version and no other; see [VersionNone].
	Version int64 `json:"version"`
	// FailingSince is when the current row of failures began; zero when the
	// latest attempt succeeded.
	FailingSince time.Time `json:"failing_since,omitzero"`
	// Held says why this process sends single messages to the endpoint, or none: a
	// secret or a token is missing, its name does not resolve, it refuses everything, or
	// its application is suspended. It is never stored.
	Held string `json:"held,omitempty"`
	// Error is why the configuration, or the application's, cannot be read: for one, this
	// process lacks the key that it is encrypted under. Of the configuration there are
	// the id and the application alone then. It is never stored.
	Error string `json:"error,omitempty"`

	// OldSecrets sign beside Secrets, each until its time: they were rotated. What is put
	// does not set them.
	OldSecrets []OldSecret `json:"old_secrets,omitempty"`
	// MadeSecret is the secret that a write has made, in its result alone. It is never
	// stored apart from Secrets.
	MadeSecret string `json:"-"`

	// Tenant is the application as it was when the store read the endpoint; nil
	// without one.
	Tenant *Application `json:"-"`
}

// EndpointState says whether an endpoint is served.
type EndpointState string

const (
	Enabled  EndpointState = "enabled"
	Disabled EndpointState = "disabled" // messages are kept, nothing is sent
)

// Party is who changes the state of an endpoint.
type Party string

const (
	ByOperator Party = "operator"
	ByTenant   Party = "tenant"  // a token of the endpoint's application
	ByForbear  Party = "forbear" // for its responses, or the lack of them
)

// StaysDisabled returns an error that matches [ErrDisabledByOperator], with the reason,
// when the endpoint is, and nil otherwise.
func (e *Endpoint) StaysDisabled() error {
	switch {
	case e.State != Disabled || e.DisabledBy != ByOperator:
		return nil
	case e.Reason == "":
		return fmt.Errorf("endpoint %q: %w", e.ID, ErrDisabledByOperator)
	}
	return fmt.Errorf("endpoint %q: %w: %s", e.ID, ErrDisabledByOperator, e.Reason)
}

// CheckReason refuses, with [ErrInvalid], a text that cannot be why an endpoint is
// disabled: one of more than 256 bytes, or with control characters.
func CheckReason(text string) error {
	f := faults{of: "endpoint"}
	f.when(len(text) > maxReason || !printable(text), reasonRule, maxReason)
	return f.join()
}

// Format says how a message becomes a request body.
type Format string

const (
	FormatRaw        Format = ""                   // the payload as it is
	FormatStructured Format = "cloudevents"        // one CloudEvents JSON object
	FormatBinary     Format = "cloudevents-binary" // the payload, with ce- headers
)

// The bounds of endpoints and messages.
const (
	maxConcurrency = 1000 // of one endpoint

	// DefaultMaxPayload bounds a message's body in bytes where no setting says more:
	// CloudEvents' bound, which all that forwards events has to take (spec/6).
	DefaultMaxPayload = 256 << 10
	// MaxPayload is the most that a setting can say.
	MaxPayload = 1 << 20
)

// Auth says where the Authorization of an endpoint comes from. It holds
// references, never a token.
type Auth struct {
	// Secret refers to a complete Authorization value: "env:NAME" or
	// "file:PATH". It is read for each attempt.
	Secret string `json:"secret,omitempty"`

	// TokenURL and the fields below ask for OAuth 2.0 client credentials.
	TokenURL     string   `json:"token_url,omitempty"`
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"` // a reference
	Scopes       []string `json:"scopes,omitempty"`
}

// Mask returns e without its secrets, header values and the queries of its
// addresses. References to secrets are not secrets. What it returns cannot be
// put: the placeholders are refused.
func (e Endpoint) Mask() Endpoint {
	headers := make([]Header, len(e.Headers))
	for i, h := range e.Headers {
		headers[i] = Header{Name: h.Name, Value: deadletter.Masked}
	}
	e.Secrets, e.Headers, e.URL, e.MadeSecret = maskSecrets(e.Secrets), headers, maskQuery(e.URL), ""
	e.OldSecrets = maskOld(e.OldSecrets)
	if e.Auth != nil {
		auth := *e.Auth
		auth.Secret, auth.ClientSecret = maskSecret(auth.Secret), maskSecret(auth.ClientSecret)
		auth.TokenURL = maskQuery(auth.TokenURL)
		e.Auth = &auth
	}
	return e
}

// maskQuery masks the query of an address, where receivers like to put keys.
func maskQuery(address string) string {
	if bare, _, ok := strings.Cut(address, "?"); ok {
		return bare + "?" + deadletter.Masked
	}
	return address
}

// placeholders names the fields that hold what [Endpoint.Mask] puts there
// instead of their values. Written back, it would replace them.
func placeholders(e *Endpoint) (fields []string) {
	fields = maskedSecrets(e.Secrets)
	for _, h := range e.Headers {
		if h.Value == deadletter.Masked {
			fields = append(fields, fmt.Sprintf("the value of header %.40q", h.Name))
		}
	}
	if maskedQuery(e.URL) {
		fields = append(fields, "the query of url")
	}
	if a := e.Auth; a != nil {
		for _, f := range []struct{ name, value string }{
			{"auth.secret", a.Secret}, {"auth.client_id", a.ClientID}, {"auth.client_secret", a.ClientSecret},
		} {
			if f.value == deadletter.Masked {
				fields = append(fields, f.name)
			}
		}
		if maskedQuery(a.TokenURL) {
			fields = append(fields, "the query of auth.token_url")
		}
	}
	return fields
}

// maskedQuery reports whether an address has the query that [maskQuery] makes.
func maskedQuery(address string) bool {
	_, query, _ := strings.Cut(address, "?")
	return strings.Contains(query, deadletter.Masked)
}

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
	f.when(err == nil && u.Scheme != "https", "tls: the url must be https")
	f.when(*t == TLS{}, "tls: it is empty: want ca, cert and key, or server_name")
	for _, r := range []struct{ name, ref string }{{"ca", t.CA}, {"cert", t.Cert}, {"key", t.Key}} {
		f.when(r.ref != "" && !IsRef(r.ref), "tls.%s: want a reference (env:NAME or file:NAME)", r.name)
	}
	f.when((t.Cert == "") != (t.Key == ""), "tls: want both cert and key")
	f.when(t.ServerName != "" && (!visible(t.ServerName, 253) || strings.ContainsAny(t.ServerName, "/*@?#%")), "tls.server_name is not a host name")
	return f.join()
}
