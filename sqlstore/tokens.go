package sqlstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// Tokens of the API are kept as digests: who reads the database learns none. They
// are random and long, so that a plain SHA-256 is enough, and found by it, so that
// no comparison takes its time by what it compares.

// Token is a token of the delivery API, without its text.
type Token struct {
	// Name is who the audit trail says has done what the token was used for.
	Name  string     `json:"name"`
	Scope TokenScope `json:"scope"`
	// Application restricts the token to what is of one application; "" is all.
	Application string    `json:"application,omitempty"`
	Created     time.Time `json:"created_at"`
	Creator     string    `json:"creator"` // who made it
	Expires     time.Time `json:"expires_at"`
	// Suspended says that its application is: then it is good to look alone. The store
	// sets it.
	Suspended bool `json:"suspended,omitempty"`
}

// TokenScope is what a token is good for.
type TokenScope string

const (
	// ScopeAdmin is everything.
	ScopeAdmin TokenScope = "admin"
	// ScopeApplication is to send messages for one application, and to look after
	// them and its endpoints.
	ScopeApplication TokenScope = "application"
	// ScopeReadOnly is to look, without payloads.
	ScopeReadOnly TokenScope = "read-only"
)

// The errors about tokens.
var (
	ErrTokenExists   = errors.New("a token of this name exists: choose another name, or revoke it first")
	ErrTokenNotFound = errors.New("no such token: see forbear token list")
)

// tokenPrefix lets those who scan texts for lost secrets know one.
const (
	tokenPrefix = "forbear_"
	tokenLen    = len(tokenPrefix) + 2*26
)

// Tokens is the view of a database that keeps the tokens of the API. Make it with
// [DB.Tokens]. It is safe for concurrent use.
type Tokens struct{ db *DB }

// Tokens returns the tokens of the database.
func (db *DB) Tokens() *Tokens { return &Tokens{db} }

// Create makes a token that is good for so long, and returns its text, which is
// stored nowhere. The error is [ErrTokenExists] when there is one of that name.
func (k *Tokens) Create(ctx context.Context, t Token, lifetime time.Duration) (text string, made Token, err error) {
	text = tokenPrefix + rand.Text() + rand.Text() // 260 bits
	var created, expires int64
	ok, err := do(ctx, k.db, func(tx *tx) (bool, error) {
		ok, err := tx.row([]any{&created, &expires}, `INSERT INTO forbear_tokens (name, hash, scope, application, created, creator, expires) VALUES (?, ?, ?, ?, {t}, ?, {t})
			ON CONFLICT (name) DO NOTHING RETURNING created, expires`,
			t.Name, digest(text), string(t.Scope), t.Application, after(0), t.Creator, after(lifetime))
		if err == nil && ok {
			err = tx.audit(queue.Entry{Who: t.Creator, Action: "token-create", Target: t.Name, Detail: fmt.Sprintf("%s %s, until %s", t.Scope, t.Application, at(expires).Format(time.RFC3339))})
		}
		return ok, err
	})
	if err == nil && !ok {
		err = fmt.Errorf("token %q: %w", t.Name, ErrTokenExists)
	}
	if err != nil {
		return "", t, err
	}
	t.Created, t.Expires = at(created), at(expires)
	return text, t, nil
}

// selectTokens reads what scanToken wants.
const selectTokens = `SELECT name, scope, application, created, creator, expires,
	EXISTS (SELECT 1 FROM forbear_applications a WHERE a.id = application AND a.suspended IS NOT NULL) FROM forbear_tokens`

func scanToken(r *sql.Rows) (t Token, err error) {
	var created, expires int64
	err = r.Scan(&t.Name, &t.Scope, &t.Application, &created, &t.Creator, &expires, &t.Suspended)
	t.Created, t.Expires = at(created), at(expires)
	return t, err
}

// Find returns the token of a text, if it has not expired; else it is
// [ErrTokenNotFound].
func (k *Tokens) Find(ctx context.Context, text string) (Token, error) {
	if len(text) != tokenLen || !strings.HasPrefix(text, tokenPrefix) {
		return Token{}, ErrTokenNotFound // not worth a question
	}
	list, err := readAll(ctx, k.db, scanToken, selectTokens+` WHERE hash = ? AND expires > {now}`, digest(text), after(0))
	return first(list, err, ErrTokenNotFound)
}

// List lists up to limit tokens in the order of their names, those that have expired
// among them, from the one behind the name after on.
func (k *Tokens) List(ctx context.Context, after string, limit int) ([]Token, error) {
	return readAll(ctx, k.db, scanToken, selectTokens+` WHERE name > ? ORDER BY name LIMIT ?`, after, limit)
}

// Any reports whether there is a token, expired or not.
func (k *Tokens) Any(ctx context.Context) (bool, error) {
	list, err := readAll(ctx, k.db, one[int], `SELECT 1 FROM forbear_tokens LIMIT 1`)
	return len(list) > 0, err
}

// Revoke deletes a token, in whoever's name; else it is [ErrTokenNotFound].
func (k *Tokens) Revoke(ctx context.Context, name, who string) error {
	return k.db.write(ctx, func(tx *tx) error {
		n, err := tx.exec(`DELETE FROM forbear_tokens WHERE name = ?`, name)
		switch {
		case err != nil:
			return err
		case n == 0:
			return own(fmt.Errorf("token %q: %w", name, ErrTokenNotFound))
		}
		return tx.audit(queue.Entry{Who: who, Action: "token-revoke", Target: name})
	})
}

// digest is what is stored of a token's text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
