package webhook

import (
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
)

// Mask returns e without its secrets, header values and the queries of its
// addresses. References to secrets are no secrets. What it returns cannot be
// put: the placeholders are refused.
func (e Endpoint) Mask() Endpoint {
	secrets := make([]string, len(e.Secrets))
	for i, s := range e.Secrets {
		secrets[i] = maskSecret(s)
	}
	headers := make([]Header, len(e.Headers))
	for i, h := range e.Headers {
		headers[i] = Header{Name: h.Name, Value: deadletter.Masked}
	}
	e.Secrets, e.Headers, e.URL = secrets, headers, maskQuery(e.URL)
	if e.Auth != nil {
		auth := *e.Auth
		auth.Secret, auth.ClientSecret = maskSecret(auth.Secret), maskSecret(auth.ClientSecret)
		auth.TokenURL = maskQuery(auth.TokenURL)
		e.Auth = &auth
	}
	return e
}

func maskSecret(s string) string {
	if s == "" || IsRef(s) {
		return s
	}
	return deadletter.Masked
}

func maskQuery(address string) string {
	if bare, _, ok := strings.Cut(address, "?"); ok {
		return bare + "?" + deadletter.Masked
	}
	return address
}

// placeholders names the fields that hold what [Endpoint.Mask] puts there
// instead of their values. Written back, it would replace them.
func placeholders(e *Endpoint) (fields []string) {
	for i, s := range e.Secrets {
		if s == deadletter.Masked {
			fields = append(fields, fmt.Sprintf("secrets[%d]", i))
		}
	}
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

func maskedQuery(address string) bool {
	_, query, _ := strings.Cut(address, "?")
	return strings.Contains(query, deadletter.Masked)
}
