// Package oauth fetches access tokens by client credentials.
package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is a client of an authorization server. Its errors show neither
// secrets nor the query of an address. It is plain data and safe for concurrent
// use.
type Client struct {
	URL, ID string
	Scopes  []string
	HTTP    *http.Client
}

const (
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
	// defaultLife is that of a token whose answer does not say.
	defaultLife = 5 * time.Minute
	maxLife     = 365 * 24 * time.Hour
)

// ErrRefused is what errors match when the server knows the client and says no.
var ErrRefused = errors.New("the client was refused")

// Fetch asks for a token with the client's secret (RFC 6749 section 4.4). It
// returns the value of an Authorization header, and when that stops being good.
func (c *Client) Fetch(ctx context.Context, secret string) (authorization string, expires time.Time, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", time.Time{}, errors.New("the token address cannot be read")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret)) // section 2.3.1
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("token request failed: %w", bare(err))
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
		return read(resp.Body)
	case http.StatusBadRequest, http.StatusUnauthorized:
		return "", time.Time{}, fmt.Errorf("token request answered %d: %w", resp.StatusCode, ErrRefused)
	default:
		return "", time.Time{}, fmt.Errorf("token request answered %d", resp.StatusCode)
	}
}

func read(body io.Reader) (authorization string, expires time.Time, err error) {
	var t struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&t); err != nil || !isToken(t.AccessToken) {
		return "", time.Time{}, errors.New("token response cannot be read")
	}
	if !strings.EqualFold(cmp.Or(t.TokenType, "Bearer"), "Bearer") {
		return "", time.Time{}, errors.New("token type is not Bearer")
	}
	life := defaultLife
	if t.ExpiresIn > 0 {
		life = time.Duration(min(t.ExpiresIn, int64(maxLife/time.Second))) * time.Second
	}
	return "Bearer " + t.AccessToken, time.Now().Add(life), nil
}

// isToken reports whether s can stand in a header.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// bare takes the address, which may hold a query, out of a client's error.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
