package lattice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/credential"
)

// ClientCredentials fetches tokens by the client credentials grant of OAuth
// 2.0. It is a [credential.Source]; [credential.New] makes of it what
// [Options] and the module grpcretry take: one fetch at a time, no lock held
// meanwhile. It keeps nothing itself and is safe for concurrent use.
type ClientCredentials struct {
	// URL of the token endpoint: "https://" + endpoint + [TokenPath].
	URL          string
	ID, Secret   string
	Client       *http.Client  // nil means http.DefaultClient
	EarlyRefresh time.Duration // before the end; default 5 min, at most half of the lifetime
}

const (
	defaultEarly    = 5 * time.Minute
	defaultLifetime = time.Hour // where the endpoint names none
	maxToken        = 1 << 20
)

// Token implements [credential.Source]. An error names neither the id nor the
// secret; one that the endpoint declares final matches
// [credential.ErrRevoked].
func (c *ClientCredentials) Token(ctx context.Context) (credential.Token, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}, "client_secret": {c.Secret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return credential.Token{}, errors.New("token endpoint: the URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	client := c.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return credential.Token{}, fmt.Errorf("token endpoint: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return credential.Token{}, fmt.Errorf("token endpoint: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return credential.Token{}, tokenRefusal(resp.StatusCode, body)
	}
	return c.read(body)
}

// tokenRefusal reads RFC 6749 section 5.2.
func tokenRefusal(status int, body []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // often no JSON at all
	switch answer.Error {
	case "invalid_client", "invalid_grant", "unauthorized_client":
		return fmt.Errorf("token endpoint: %s: %w", answer.Error, credential.ErrRevoked)
	}
	return fmt.Errorf("token endpoint: http status %d", status)
}

func (c *ClientCredentials) read(body []byte) (credential.Token, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		TokenType   string `json:"token_type"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.AccessToken == "" {
		return credential.Token{}, errors.New("token endpoint: the answer holds no token")
	}
	if t := answer.TokenType; t != "" && !strings.EqualFold(t, "bearer") {
		return credential.Token{}, errors.New("token endpoint: the token is no bearer token")
	}
	lifetime := defaultLifetime
	if answer.ExpiresIn > 0 {
		lifetime = time.Duration(min(answer.ExpiresIn, int64(30*24*time.Hour/time.Second))) * time.Second
	}
	early := c.EarlyRefresh
	if early <= 0 {
		early = defaultEarly
	}
	return credential.Token{
		Value:   "Bearer " + answer.AccessToken,
		Expires: time.Now().Add(lifetime - min(early, lifetime/2)),
	}, nil
}
