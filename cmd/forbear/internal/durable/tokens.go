package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// The lifetime of a token that is asked for without one, and the longest.
const (
	tokenLifetime    = 90 * 24 * time.Hour
	maxTokenLifetime = 2 * 365 * 24 * time.Hour
)

// NewToken is what is asked for of a token.
type NewToken struct {
	Name        string              `json:"name"`
	Scope       sqlstore.TokenScope `json:"scope"`
	Application string              `json:"application"`
	ExpiresIn   time.Duration       `json:"expires_in"`
}

// Check completes what is asked for, and refuses what could not be granted, with
// [webhook.ErrInvalid].
func (n *NewToken) Check() error {
	if n.ExpiresIn == 0 {
		n.ExpiresIn = tokenLifetime
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w token: "+format, append([]any{webhook.ErrInvalid}, args...)...)
	}
	switch {
	case n.Name == "" || len(n.Name) > 64 || strings.ContainsFunc(n.Name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("/?#%", c) }) || n.Name == "." || n.Name == "..":
		return refuse("name is not 1 to 64 visible characters without / ? # %%, or is . or ..")
	case n.Name == rootToken:
		return refuse("the name %q is reserved for the token of --api-token-file: choose another", n.Name)
	case n.Scope != sqlstore.ScopeAdmin && n.Scope != sqlstore.ScopeApplication && n.Scope != sqlstore.ScopeReadOnly:
		return refuse("scope %.20q: want %s, %s or %s", n.Scope, sqlstore.ScopeAdmin, sqlstore.ScopeApplication, sqlstore.ScopeReadOnly)
	case n.Scope == sqlstore.ScopeApplication && n.Application == "":
		return refuse("scope %s needs an application", n.Scope)
	case n.Scope == sqlstore.ScopeAdmin && n.Application != "":
		return refuse("scope %s is for all applications: leave application out", n.Scope)
	case n.ExpiresIn < time.Minute || n.ExpiresIn > maxTokenLifetime:
		return refuse("expires_in %v is outside 1m to 17520h (two years)", n.ExpiresIn)
	}
	return nil
}

// MadeToken is a new token with its text.
type MadeToken struct {
	sqlstore.Token

	Text string `json:"token"`
}

// Create makes a token, in the name of who.
func (n NewToken) Create(ctx context.Context, db *sqlstore.DB, who string) (MadeToken, error) {
	if err := n.Check(); err != nil {
		return MadeToken{}, err
	}
	if n.Application != "" {
		_, err := db.Webhooks().Application(ctx, n.Application)
		if errors.Is(err, webhook.ErrNotFound) {
			err = fmt.Errorf("%w %q", webhook.ErrUnknownApplication, n.Application)
		}
		if err != nil {
			return MadeToken{}, err
		}
	}
	text, t, err := db.Tokens().Create(ctx, sqlstore.Token{Name: n.Name, Scope: n.Scope, Application: n.Application, Creator: who}, n.ExpiresIn)
	return MadeToken{t, text}, err
}

// postToken makes a token. Its text is in this response and nowhere else.
func (s *Service) postToken(r *http.Request, n NewToken) (int, any, error) {
	made, err := n.Create(r.Context(), s.DB.DB, actor(r))
	s.tokens.forget()
	return http.StatusCreated, made, err
}

// whoami is what a caller learns of its token.
type whoami struct {
	Name        string              `json:"name"`
	Scope       sqlstore.TokenScope `json:"scope"`
	Application string              `json:"application,omitempty"`
	Expires     time.Time           `json:"expires,omitzero"`
}

// showCaller says who the caller is. One that needed no token may do everything.
func (*Service) showCaller(r *http.Request) (int, any, error) {
	t := callerOf(r).Token
	return http.StatusOK, whoami{t.Name, cmp.Or(t.Scope, sqlstore.ScopeAdmin), t.Application, t.Expires}, nil
}

// listTokens lists the tokens in the order of their names, without their texts.
func (s *Service) listTokens(r *http.Request) (int, any, error) {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	list, err := s.tokens.store.List(r.Context(), r.URL.Query().Get("after"), limit)
	return http.StatusOK, page("tokens", list, limit, func(t sqlstore.Token) string { return t.Name }), err
}

// revokeToken ends a token: here at once, and elsewhere within seconds.
func (s *Service) revokeToken(r *http.Request) (int, any, error) {
	err := s.tokens.store.Revoke(r.Context(), r.PathValue("name"), actor(r))
	s.tokens.forget()
	return http.StatusNoContent, nil, err
}

// sayOpen logs that the API demands no token though it did: the last one was revoked, and
// the process began anew.
func (s *Service) sayOpen(ctx context.Context, o Options) error {
	if o.Token != "" {
		return nil
	}
	some, err := s.tokens.any(ctx)
	if err != nil || some {
		return err
	}
	list, _, err := s.DB.DeadLetters().AuditPage(ctx, queue.AuditFilter{Action: "token-revoke"}, 0, 1)
	if len(list) > 0 {
		s.log.Warn("the delivery API requires no token, because all were revoked: any process on this machine can use it: make one with forbear token create")
	}
	return err
}
