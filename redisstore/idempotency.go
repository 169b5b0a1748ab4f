package redisstore

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/gather"
)

//go:embed idempotency/*.lua
var sources embed.FS

// The scripts, one for each operation. They are sent by their digest, and whole
// where the server does not know them.
var (
	claimScript    = script("claim")
	renewScript    = script("renew")
	completeScript = script("complete")
	releaseScript  = script("release")
	holdScript     = script("hold")
	resolveScript  = script("resolve")
	sweepScript    = script("sweep")
)

// script returns an operation, after the prelude that all of them begin with: Redis has
// no includes.
func script(name string) *redis.Script { return redis.NewScript(file("prelude") + file(name)) }

// file reads an embedded script.
func file(name string) string {
	b, err := sources.ReadFile("idempotency/" + name + ".lua")
	if err != nil {
		panic(err) // embedded: a mistake of the build
	}
	return string(b)
}

// Idempotency keeps idempotency records on Redis 5 or later, or Valkey: it
// implements idempotency.Store. A claim and its completion are one round trip
// each, or part of one that they share with others, and all times are the
// server's.
//
// It is not for money. Redis responds before its replicas, and under
// appendfsync everysec before its disk, have the record: a failover or a
// power cut may lose the fact that an operation was done, and the next
// attempt does it again. Use package sqlstore where that must not happen.
//
// A record is one hash under one name, in one slot of a cluster, and expires
// by itself: idempotency.RunSweeper is not needed. Make it with
// [OpenIdempotency] or [NewIdempotency]. It is safe for concurrent use.
type Idempotency struct {
	client  redis.UniversalClient
	opts    IdempotencyOptions
	durable bool
	close   func() error
	runs    gather.Calls[run, *redis.Cmd]

	censuses censuses
}

// IdempotencyOptions say how records are kept. The zero value is good.
type IdempotencyOptions struct {
	// Prefix begins the names of all records. Services that share a server,
	// and whose principals may have the same names, need one each. Default
	// "forbear:key:".
	Prefix string
	// MaxResponse bounds what is stored of a response, in bytes of its
	// headers and its body. A larger one leaves a tombstone. Default 2 MiB.
	MaxResponse int
	// Cipher encrypts headers and bodies of responses at rest. That of
	// package sqlstore fits, and binds each to its record: who can write to the
	// server, and has no key, cannot have one replayed to another caller.
	Cipher Cipher
	// Bound refuses responses that were not encrypted for their record: those
	// in the clear, and those of a version that bound nothing. Set it when these
	// have expired. It needs the Cipher of package sqlstore.
	Bound bool
	// Evicting accepts a server that may evict records under memory pressure,
	// and so forget what was done before its time. It is logged.
	Evicting bool
	// Logger gets warnings about the server. Nil means slog.Default().
	Logger *slog.Logger
}

// Cipher encrypts at rest. Both methods must be safe for concurrent use.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// OpenIdempotency returns the records on the server of a URL such as
// redis://user:password@host:6379/0, or rediss:// for TLS, with a client of its
// own, set up as [NewIdempotency] wishes. Close ends it.
func OpenIdempotency(ctx context.Context, url string, o IdempotencyOptions) (*Idempotency, error) {
	opts, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(opts)
	i, err := NewIdempotency(ctx, client, o)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	i.close = client.Close
	return i, nil
}

// NewIdempotency returns the records on a server or cluster, through a
// client that the caller keeps and closes. Its options should have
// ContextTimeoutEnabled, or an unresponsive server holds requests for the
// client's own time-outs, and MaxRetries -1, because the claimant itself
// tries again.
//
// The server's settings are read first: one that evicts records is refused
// with [ErrEviction], and one without an append-only file is warned of, see
// [Idempotency.Durable].
func NewIdempotency(ctx context.Context, client redis.UniversalClient, o IdempotencyOptions) (*Idempotency, error) {
	o.Prefix = cmp.Or(o.Prefix, "forbear:key:")
	o.MaxResponse = cmp.Or(o.MaxResponse, 2<<20)
	if o.MaxResponse < 0 {
		return nil, errors.New("redisstore: max response is negative")
	}
	if _, ok := o.Cipher.(binder); o.Bound && !ok {
		return nil, errors.New("redisstore: bound records need a cipher of sqlstore.NewCipher")
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	i := &Idempotency{client: client, opts: o, close: func() error { return nil }}
	i.gather()
	if err := i.inspect(ctx); err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return i, nil
}

// Close closes the client of records that were opened by [OpenIdempotency].
func (i *Idempotency) Close() error { return i.close() }

// Durable reports whether the server has an append-only file. Without one,
// records end with its process at the latest, which
// idempotency.Options.Production refuses.
func (i *Idempotency) Durable() bool { return i.durable }

// micros is a duration in the scripts' unit: Redis's clock has microseconds.
func micros(d time.Duration) int64 { return d.Microseconds() }

// bit is a bool as the scripts take it.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Claim implements idempotency.Store. A claim that is sent again, because
// its response was lost, is the same claim: it has the same owner.
func (i *Idempotency) Claim(ctx context.Context, c idempotency.Claim) (v idempotency.Verdict, err error) {
	cmd, err := i.runs.Ask(ctx, run{claimScript, i.name(c.ID), []any{
		c.Fingerprint, clip(c.Operation), c.Owner, micros(c.Lease), micros(c.Retention), bit(c.Rerun), idempotency.Abandoned,
	}}, 0)
	if err != nil {
		return v, failed("claim", err)
	}
	got, err := cmd.Slice()
	if err == nil {
		v, err = i.verdict(c, got)
	}
	return v, failed("claim", err)
}

// end runs a script that needs the claim's fence, and turns its refusal into
// ErrFenced. The comparison and the write are one step on the server.
func (i *Idempotency) end(ctx context.Context, what string, s *redis.Script, t idempotency.Token, args ...any) error {
	size := 0
	for _, a := range args {
		if b, ok := a.([]byte); ok {
			size += len(b)
		}
	}
	cmd, err := i.runs.Ask(ctx, run{s, i.name(t.ID), append([]any{t.Owner, t.Fence}, args...)}, size)
	if err != nil {
		return failed(what, err)
	}
	done, err := cmd.Int()
	if err == nil && done != 1 {
		err = idempotency.ErrFenced
	}
	return failed(what, err)
}

// failed says which operation an error comes from; nil stays nil.
func failed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("redisstore: %s: %w", what, err)
	}
	return nil
}

// Renew implements idempotency.Store.
func (i *Idempotency) Renew(ctx context.Context, t idempotency.Token, lease time.Duration) error {
	return i.end(ctx, "renew", renewScript, t, micros(lease))
}

// Complete implements idempotency.Store.
func (i *Idempotency) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, retention time.Duration) error {
	fields, err := i.encode(t.ID, a)
	if err != nil {
		return failed("complete", err)
	}
	return i.end(ctx, "complete", completeScript, t, append([]any{micros(retention)}, fields...)...)
}

// Release implements idempotency.Store.
func (i *Idempotency) Release(ctx context.Context, t idempotency.Token) error {
	return i.end(ctx, "release", releaseScript, t)
}

// Hold implements idempotency.Store.
func (i *Idempotency) Hold(ctx context.Context, t idempotency.Token, why string) error {
	return i.end(ctx, "hold", holdScript, t, clip(why))
}
