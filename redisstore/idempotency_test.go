package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest"
)

func openKeys(t *testing.T, s *server, o redisstore.IdempotencyOptions) *redisstore.Idempotency {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	i, err := redisstore.OpenIdempotency(t.Context(), s.url(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func emptied(t *testing.T, s *server) {
	t.Helper()
	if err := client(t, s).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestIdempotencyStore(t *testing.T) {
	s := startRedis(t)
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		emptied(t, s)
		return openKeys(t, s, redisstore.IdempotencyOptions{})
	})
}

func TestIdempotencyStoreEncrypted(t *testing.T) {
	s := startRedis(t)
	cipher, err := sqlstore.NewCipher(sqlstore.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		emptied(t, s)
		return openKeys(t, s, redisstore.IdempotencyOptions{Cipher: cipher})
	})
	i := openKeys(t, s, redisstore.IdempotencyOptions{Cipher: cipher})
	completed(t, i, "private", idempotency.Response{Status: 201, Header: http.Header{"Location": {"/secret-place"}}, Body: []byte("secret-body")})
	c := client(t, s)
	for _, name := range c.Keys(t.Context(), "*").Val() {
		for field, value := range c.HGetAll(t.Context(), name).Val() {
			if strings.Contains(value, "secret") {
				t.Errorf("%s of %s is readable: %q", field, name, value)
			}
		}
	}
	if _, err := openKeys(t, s, redisstore.IdempotencyOptions{}).Claim(t.Context(), claim("private")); err == nil {
		t.Error("an encrypted record was read without a cipher")
	}
}

func claim(key string) idempotency.Claim {
	return idempotency.Claim{
		ID: idempotency.ID{Scope: "t1", Key: idempotency.Digest(key)}, Fingerprint: "f1", Operation: "POST /pay",
		Owner: "owner of " + key, Lease: time.Minute, Retention: 48 * time.Hour,
	}
}

func token(c idempotency.Claim) idempotency.Token { return idempotency.Token{ID: c.ID, Owner: c.Owner} }

func claimed(t *testing.T, i *redisstore.Idempotency, c idempotency.Claim, want idempotency.ClaimOutcome) idempotency.Verdict {
	t.Helper()
	v, err := i.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if v.Outcome != want {
		t.Fatalf("outcome %d, want %d: %+v", v.Outcome, want, v.Record)
	}
	return v
}

func completed(t *testing.T, i *redisstore.Idempotency, key string, a idempotency.Response) {
	t.Helper()
	c := claim(key)
	claimed(t, i, c, idempotency.Acquired)
	if err := i.Complete(t.Context(), token(c), a, c.Retention); err != nil {
		t.Fatal(err)
	}
}

// trips counts the commands and pipelines that a client sends.
type trips struct{ n atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmds)
	}
}

func TestRoundTrips(t *testing.T) {
	s := startRedis(t)
	c, count := client(t, s), &trips{}
	i, err := redisstore.NewIdempotency(t.Context(), c, redisstore.IdempotencyOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, i, "loads the scripts", idempotency.Response{Status: 201})
	c.AddHook(count)
	completed(t, i, "fresh", idempotency.Response{Status: 201})
	if n := count.n.Swap(0); n != 2 {
		t.Errorf("a fresh key took %d round trips, want 2", n)
	}
	claimed(t, i, claim("fresh"), idempotency.Replay)
	if n := count.n.Swap(0); n != 1 {
		t.Errorf("a replay took %d round trips, want 1", n)
	}
	if err := c.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	completed(t, i, "a server that has forgotten the scripts", idempotency.Response{Status: 201})
}

// What may be forgotten goes by itself; what may not, stays.
func TestTimesToLive(t *testing.T) {
	s := startRedis(t)
	i, c := openKeys(t, s, redisstore.IdempotencyOptions{}), client(t, s)
	rerun := claim("rerun")
	rerun.Rerun = true
	claimed(t, i, claim("started"), idempotency.Acquired)
	claimed(t, i, rerun, idempotency.Acquired)
	for name, end := range map[string]func(idempotency.Token) error{
		"completed": func(k idempotency.Token) error {
			return i.Complete(t.Context(), k, idempotency.Response{Status: 201}, 48*time.Hour)
		},
		"released": func(k idempotency.Token) error { return i.Release(t.Context(), k) },
		"held":     func(k idempotency.Token) error { return i.Hold(t.Context(), k, "cut off") },
		"resolved": func(k idempotency.Token) error {
			return errors.Join(i.Hold(t.Context(), k, "cut off"), i.Resolve(t.Context(), k.ID, idempotency.Resolution{}))
		},
		"renewed": func(k idempotency.Token) error { return i.Renew(t.Context(), k, time.Minute) },
	} {
		c := claim(name)
		c.Rerun = name == "held" // which was mortal before
		claimed(t, i, c, idempotency.Acquired)
		if err := end(token(claim(name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, mortal := range map[string]bool{
		"started": false, "rerun": true, "completed": true, "released": true, "held": false, "resolved": true, "renewed": false,
	} {
		ttl := c.TTL(t.Context(), "forbear:key:2:t1:"+idempotency.Digest(name)).Val()
		if want := 49 * time.Hour; mortal && (ttl < want-time.Minute || ttl > want+2*time.Minute) || !mortal && ttl != -1 {
			t.Errorf("%s lives for %v", name, ttl)
		}
	}
	again := claim("released") // lives for ever again, while it runs
	claimed(t, i, again, idempotency.Acquired)
	if ttl := c.TTL(t.Context(), "forbear:key:2:t1:"+idempotency.Digest("released")).Val(); ttl != -1 {
		t.Errorf("the second run lives for %v", ttl)
	}
}

// A command whose answer was lost may be sent again, by the client or by the
// middleware.
func TestSentAgain(t *testing.T) {
	i := openKeys(t, startRedis(t), redisstore.IdempotencyOptions{})
	ctx, c := t.Context(), claim("k")
	for range 2 {
		if v := claimed(t, i, c, idempotency.Acquired); v.Record.Fence != 1 || v.Record.Attempt != 1 {
			t.Errorf("got %+v", v.Record)
		}
	}
	for range 2 {
		if err := i.Release(ctx, token(c)); err != nil {
			t.Error(err)
		}
	}
	c.Owner = "second"
	claimed(t, i, c, idempotency.Acquired)
	for range 2 {
		if err := i.Complete(ctx, token(c), idempotency.Response{Status: 201, Body: []byte("a")}, time.Hour); err != nil {
			t.Error(err)
		}
	}
	if err := i.Complete(ctx, token(c), idempotency.Response{Status: 201, Body: []byte("b")}, time.Hour); !errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("another answer: %v, want ErrFenced", err)
	}
}

func TestLargeResponseLeavesATombstone(t *testing.T) {
	i := openKeys(t, startRedis(t), redisstore.IdempotencyOptions{MaxResponse: 100})
	completed(t, i, "k", idempotency.Response{Status: 201, Header: http.Header{"Location": {"/pay/1"}, "Link": {"x"}}, Body: make([]byte, 100)})
	a := claimed(t, i, claim("k"), idempotency.Replay).Record.Response
	if a.Tombstone != idempotency.Oversize || a.Status != 201 || len(a.Body) > 0 || a.Header.Get("Location") != "/pay/1" || a.Header.Get("Link") != "" {
		t.Errorf("got %+v", a)
	}
}

// Scopes come from users: whatever is in them, records stay apart and can be
// listed.
func TestOddScopes(t *testing.T) {
	i := openKeys(t, startRedis(t), redisstore.IdempotencyOptions{Prefix: "a*[b]{c}:"})
	scopes := []string{"a", "a:", "a:b", "1:a", "{x}", "}", "*", "[a-z]", `\`, "ä", "", "t 1", "a\nb"}
	for _, scope := range scopes {
		c := claim("k")
		c.ID.Scope = scope
		claimed(t, i, c, idempotency.Acquired)
	}
	list, err := i.List(t.Context(), idempotency.Filter{})
	if err != nil || len(list) != len(scopes) {
		t.Errorf("%d records, %v; want %d", len(list), err, len(scopes))
	}
	for _, scope := range scopes[:10] {
		list, err := i.List(t.Context(), idempotency.Filter{Scope: scope})
		if err != nil || len(list) != 1 || list[0].ID.Scope != scope {
			t.Errorf("scope %q: %+v, %v", scope, list, err)
		}
	}
}

func TestServersThatForget(t *testing.T) {
	evicting := startRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	if _, err := redisstore.OpenIdempotency(t.Context(), evicting.url(), redisstore.IdempotencyOptions{}); !errors.Is(err, redisstore.ErrEviction) {
		t.Errorf("got %v, want ErrEviction", err)
	}
	var log bytes.Buffer
	i := openKeys(t, evicting, redisstore.IdempotencyOptions{Evicting: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "volatile-lru") || !strings.Contains(log.String(), "appendonly") {
		t.Errorf("logged: %s", log.String())
	}
	production := idempotency.Options{Scope: idempotency.SingleTenant(), Production: true}
	if _, err := idempotency.Handler(i, production, http.NotFoundHandler()); err == nil || i.Durable() {
		t.Error("a server without an append-only file was taken for production")
	}
	kept := openKeys(t, startRedis(t, "--appendonly", "yes"), redisstore.IdempotencyOptions{})
	if _, err := idempotency.Handler(kept, production, http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
	if _, err := redisstore.OpenIdempotency(t.Context(), "redis://u:secret@127.0.0.1:1/0", redisstore.IdempotencyOptions{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a server that is not there: %v", err)
	}
}
