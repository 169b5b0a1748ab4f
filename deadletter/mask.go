package deadletter

import (
	"net/textproto"
	"strings"
)

// Masked stands for what is not shown, in letters and wherever else forbear
// leaves out a secret. It is no value: what takes configuration refuses it.
const Masked = "***"

// secretHeaders carry credentials, whatever their values look like.
var secretHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "Set-Cookie": true,
	"X-Api-Key": true, "Api-Key": true, "X-Auth-Token": true, "X-Csrf-Token": true,
}

// UnreadableHeaders is the name under which a letter keeps headers that could
// not be read, as they were. They may hold anything.
const UnreadableHeaders = "(unreadable)"

// secretWords in a header's name make its value a secret.
var secretWords = []string{"token", "secret", "password", "signature", "credential", "apikey", "api-key", "session"}

// CarriesCredential reports whether the named header is one of those that carry
// credentials by definition. Dead letters of events keep its name, and
// [Masked] for its value.
func CarriesCredential(name string) bool {
	return secretHeaders[textproto.CanonicalMIMEHeaderKey(name)]
}

// secretHeader reports whether a header's value may be a credential. It errs
// on the side of hiding: a list is no place to learn that it was wrong.
func secretHeader(name string) bool {
	if CarriesCredential(name) || name == UnreadableHeaders {
		return true
	}
	name = strings.ToLower(name)
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// Mask returns l without its payload and without the values of headers that
// may be credentials, and without what its errors quote, which may be the
// payload's. Lists and exports show this form; more is shown only on request, and
// the request is recorded.
func (l Letter) Mask() Letter {
	headers := make([]Header, len(l.Headers))
	for i, h := range l.Headers {
		if secretHeader(h.Name) {
			h.Value = Masked
		}
		headers[i] = h
	}
	l.Headers = headers
	if l.Payload != nil {
		l.Payload = []byte(Masked)
	}
	history := make([]Attempt, len(l.History))
	for i, a := range l.History {
		a.Response, a.Error = "", unquoted(a.Error)
		history[i] = a
	}
	l.History = history
	l.Error, l.Panic = unquoted(l.Error), unquoted(l.Panic)
	return l
}
