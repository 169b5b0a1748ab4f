// Package credential hands out credentials for the attempts of calls: one token
// for all of them, fetched anew when it has expired or was refused, never
// replaced by a weaker one.
//
//	tokens := credential.New(credential.SourceFunc(fetch))
//
// A [Cache] goes to httpretry.WithCredentials, grpcretry.WithCredentials or a
// route of the gateway. What it fetches comes from a [Source]; package oauth has
// one for OAuth 2.0's client credentials. The package knows nothing of retries
// or protocols.
package credential

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// Token is a credential as it goes into an Authorization header, scheme
// included: "Bearer abc". Printing or logging one shows a stand-in. The zero
// value is not a credential.
type Token struct {
	Value string
	// Expires is when it stops being good; zero means that the source does not
	// know.
	Expires time.Time
}

// String returns a stand-in: a token is a secret.
func (t Token) String() string { return "[redacted]" }

// GoString returns the same stand-in, for %#v.
func (t Token) GoString() string { return t.String() }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// scheme returns the part before the first space, in lower case: RFC 9110
// section 11.1 has schemes in any case.
func (t Token) scheme() string {
	s, _, _ := strings.Cut(t.Value, " ")
	return strings.ToLower(s)
}

// Source fetches a token. It takes three lines to make one of an
// oauth2.TokenSource. An error that matches [ErrRevoked] is final.
type Source interface {
	Token(ctx context.Context) (Token, error)
}

// SourceFunc is a function that is a [Source].
type SourceFunc func(ctx context.Context) (Token, error)

// Token calls f.
func (f SourceFunc) Token(ctx context.Context) (Token, error) { return f(ctx) }

var (
	// ErrRevoked is what a [Source] returns, wrapped or not, when the
	// credentials at hand will never yield a token again.
	ErrRevoked = errors.New("token permanently revoked")
	// ErrRefreshFailed is what errors of a [Cache] match when its source
	// failed. The root package has it under the same name.
	ErrRefreshFailed = errors.New("credentials could not be refreshed")
	// ErrWeak is the error of a [Cache] whose source returned a token of
	// another scheme than before, or an empty one. The root package has it as
	// ErrWeakCredential.
	ErrWeak = errors.New("a retry would carry a weaker credential or none")
)
