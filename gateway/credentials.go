package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/credential/oauth"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/loopback"
)

// Reference says where a secret is: in an environment variable or in a file.
// One of the two is set.
type Reference struct{ Env, File string }

// CredentialSource says where the Authorization of a dependency's calls comes
// from: Secret is where the header's whole value is, or else TokenURL is asked
// for a token with ClientID and ClientSecret (RFC 6749 section 4.4). It holds no
// secret itself.
//
// A file is read again every minute and after a 401; the environment cannot
// change.
type CredentialSource struct {
	Secret       Reference
	TokenURL     string
	ClientID     string
	ClientSecret Reference
	Scopes       []string
	// Connect bounds the making of a connection to TokenURL; zero means 2 s.
	Connect time.Duration
}

// Credentials returns the credentials of the source, for [Route]. Files and
// TokenURL are read when a call needs them; a variable that is not set, and an
// address that would carry the secret in clear, are errors at once.
func (s CredentialSource) Credentials() (*credential.Cache, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.TokenURL == "" {
		return credential.New(explained("", s.stored)), nil
	}
	sender, err := upstream.New(upstream.Config{Connect: s.Connect})
	if err != nil {
		return nil, err
	}
	// A token is fetched every few minutes at the most. Without a connection in
	// between, none is left behind when others take the place of these credentials.
	sender.Close()
	tokens := &oauth.ClientCredentials{
		URL: s.TokenURL, ID: s.ClientID, Secret: s.ClientSecret.secret, Scopes: s.Scopes, StatusIsFinal: true,
		HTTP: &http.Client{
			Transport: sender,
			// A redirect would send the client's secret to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	return credential.New(explained(s.TokenURL, tokens.Token)), nil
}

// check refuses a source that is incomplete or contradicts itself, and one that
// would send the client's secret in clear to another machine. It reads variables,
// which cannot change, and no files, which may be mounted later.
func (s CredentialSource) check() error {
	secret := s.Secret
	if s.TokenURL != "" {
		if s.Secret != (Reference{}) || s.ClientID == "" {
			return errors.New("credentials: token_url needs client_id and client_secret, and excludes secret")
		}
		u, err := url.Parse(s.TokenURL)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
			return errors.New("credentials: token_url is not a URL such as https://auth.internal/token")
		case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Host(u.Hostname())):
			return errors.New("credentials: token_url is not https, so the client's secret would be sent in clear: use https")
		}
		secret = s.ClientSecret
	}
	if (secret.Env == "") == (secret.File == "") {
		return errors.New("credentials: secret needs {env: NAME} or {file: PATH}")
	}
	if secret.Env == "" {
		return nil
	}
	if s.TokenURL == "" {
		_, err := s.stored(context.Background())
		return err
	}
	_, err := secret.read()
	return err
}

// fileLife is how long the contents of a file are taken to hold.
const fileLife = time.Minute

// stored reads a whole Authorization value.
func (s CredentialSource) stored(context.Context) (credential.Token, error) {
	value, err := s.Secret.read()
	if err != nil {
		return credential.Token{}, err
	}
	if scheme, rest, ok := strings.Cut(value, " "); !ok || scheme == "" || rest == "" {
		return credential.Token{}, fmt.Errorf("%s must hold a whole Authorization value, such as \"Bearer ...\"", s.Secret)
	}
	t := credential.Token{Value: value}
	if s.Secret.File != "" {
		t.Expires = time.Now().Add(fileLife)
	}
	return t, nil
}

// maxSecret is the longest secret that is read, in bytes.
const maxSecret = 16 << 10

// read returns the secret, without the space around it. Its errors show where
// it should be, and nothing of it.
func (r Reference) read() (string, error) {
	value := os.Getenv(r.Env)
	if r.File != "" {
		f, err := os.Open(r.File)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
		if err != nil {
			return "", err
		}
		value = string(data)
	}
	switch value = strings.TrimSpace(value); {
	case value == "":
		return "", fmt.Errorf("%s %s", r, r.missing())
	case len(value) > maxSecret:
		return "", fmt.Errorf("%s holds more than %d bytes", r, maxSecret)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", fmt.Errorf("%s holds more than one line", r)
	}
	return value, nil
}

// secret is read for a source of tokens.
func (r Reference) secret(context.Context) (string, error) { return r.read() }

// missing says why there is no secret, and what to do.
func (r Reference) missing() string {
	if r.File != "" {
		return "is empty: write the secret into it"
	}
	if _, ok := os.LookupEnv(r.Env); !ok {
		return "is not set: set it where the gateway runs, or name a file with {file: PATH}"
	}
	return "is empty: set it where the gateway runs, or name a file with {file: PATH}"
}

// String says where the secret is.
func (r Reference) String() string {
	if r.File != "" {
		return "file " + r.File
	}
	return "environment variable " + r.Env
}

// explained returns a source whose errors have words for the log: without them, its
// reader learns that no credentials could be had, and not what to fix.
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
	f, known := edge.ClassifyNet(e.error)
	_, quotes := errors.AsType[quoting](e.error)
	if e.tokenURL == "" || !known && !quotes {
		return slog.StringValue(e.Error())
	}
	u, _ := url.Parse(e.tokenURL) // check has parsed it before
	return slog.StringValue("token request to " + u.Host + ": " + cmp.Or(f.Explain(), f.Type, "the response cannot be read"))
}
