package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/storetest"
)

func open(t *testing.T, s *server) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(s.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func client(t *testing.T, s *server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.address})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestBudgetStore(t *testing.T) {
	s := startRedis(t)
	storetest.RunBudget(t, func(t *testing.T) budget.Store {
		if err := client(t, s).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return open(t, s)
	})
}

func tell(t *testing.T, store *redisstore.Store, id string, initial int64) budget.Reading {
	t.Helper()
	u := budget.Usage{Initial: initial}
	f, err := store.Sync(t.Context(), "k", 30*time.Second, budget.Report{Instance: id, Total: u, Recent: []budget.Usage{u}, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A server that evicts one of the keys must not count the window twice.
func TestLosingOneKeyBeginsAnew(t *testing.T) {
	s := startRedis(t)
	store, c := open(t, s), client(t, s)
	for _, part := range []string{"window", "known", "leases"} {
		tell(t, store, "a", 10)
		tell(t, store, "b", 5)
		if n := c.Del(t.Context(), "forbear:budget:{k}:"+part).Val(); n != 1 {
			t.Fatalf("deleted %d keys, want 1", n)
		}
		tell(t, store, "a", 10)
		if f := tell(t, store, "b", 5); f.Initial != 15 || f.Instances != 2 {
			t.Errorf("without its %s the budget reads %+v, want 15 requests of 2", part, f)
		}
	}
}

func TestKeysExpire(t *testing.T) {
	s := startRedis(t)
	store, c := open(t, s), client(t, s)
	tell(t, store, "a", 1)
	keys := c.Keys(t.Context(), "*").Val()
	if len(keys) != 3 {
		t.Fatalf("keys are %q, want three", keys)
	}
	for _, key := range keys {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl <= 30*time.Second || ttl > 91*time.Second {
			t.Errorf("%s expires in %v, want between one and about three windows", key, ttl)
		}
	}
}

func TestSyncObeysItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	store, err := redisstore.Open("redis://" + l.Addr().String() + "?read_timeout=2m") // the client's own time
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = store.Sync(ctx, "k", 30*time.Second, budget.Report{Instance: "a"})
	if err == nil || time.Since(start) > time.Minute {
		t.Errorf("got %v after %v, want an error at the deadline", err, time.Since(start))
	}
}

func TestOpenKeepsThePassword(t *testing.T) {
	for _, url := range []string{"redis://u:hunter2@host:1/first", "http://u:hunter2@host", "redis://u:hunter2@host/%zz"} {
		store, err := redisstore.Open(url)
		if err == nil {
			_ = store.Close()
			t.Errorf("%s: accepted", url)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

func TestSyncRefusesTinyWindows(t *testing.T) {
	store, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, err = store.Sync(t.Context(), "k", time.Millisecond, budget.Report{})
	if _, network := errors.AsType[net.Error](err); err == nil || network {
		t.Errorf("got %v, want a refusal before the network", err)
	}
}
