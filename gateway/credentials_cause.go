package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
)

// explained returns a source whose errors have words for the log: without them, its
// reader learns that no credentials could be had, and not what is to be mended.
func explained(tokenURL string, next credential.SourceFunc) credential.SourceFunc {
	return func(ctx context.Context) (credential.Token, error) {
		t, err := next(ctx)
		if err != nil {
			return credential.Token{}, sourceError{err, tokenURL}
		}
		return t, nil
	}
}

// sourceError is why a [CredentialSource] had no credentials. It is a
// [slog.LogValuer], as [forbear.LogObserver] wants it.
type sourceError struct {
	error
	tokenURL string // "" where no server was asked
}

// Unwrap serves errors.Is and errors.As.
func (e sourceError) Unwrap() error { return e.error }

// quoting is an error whose text may hold what a token server said.
type quoting interface {
	error
	Quotes() bool
}

// LogValue returns where it failed, and why. A failure of the connection is in fixed
// words, since the errors of net/http quote what the server sent; all other texts are
// the gateway's own.
func (e sourceError) LogValue() slog.Value {
	f, known := forbear.ClassifyNet(e.error)
	_, quotes := errors.AsType[quoting](e.error)
	if e.tokenURL == "" || !known && !quotes {
		return slog.StringValue(e.Error())
	}
	u, _ := url.Parse(e.tokenURL) // check has parsed it before
	return slog.StringValue("token request to " + u.Host + ": " + cmp.Or(f.Explain(), f.Type, "the response cannot be read"))
}
