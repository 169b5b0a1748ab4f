package redisstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/storetest"
)

// startCluster starts a cluster of two nodes, each with half of the slots.
func startCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	var nodes []*server
	for range 2 {
		bus := porttest.Free(t)
		nodes = append(nodes, startRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus)))
	}
	for k, n := range nodes {
		c := client(t, n)
		if err := c.ClusterAddSlotsRange(t.Context(), k*8192, k*8192+8191).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(nodes[1].address)
	bus := nodes[1].args[len(nodes[1].args)-1]
	if err := client(t, nodes[0]).Do(t.Context(), "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		joined(t, client(t, n))
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{nodes[0].address, nodes[1].address}, ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// joined waits until a node knows of all slots.
func joined(t *testing.T, c *redis.Client) {
	t.Helper()
	for range 2400 {
		if info := c.ClusterInfo(t.Context()).Val(); strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384") {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("no cluster:\n%s", c.ClusterInfo(t.Context()).Val())
}

func TestIdempotencyOnACluster(t *testing.T) {
	c := startCluster(t)
	flush := func(t *testing.T) {
		if err := c.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error { return n.FlushAll(ctx).Err() }); err != nil {
			t.Fatal(err)
		}
	}
	open := func(t *testing.T) idempotency.Store {
		flush(t)
		i, err := redisstore.NewIdempotency(t.Context(), c, redisstore.IdempotencyOptions{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	storetest.RunIdempotency(t, open)
	i := open(t).(*redisstore.Idempotency)
	for n := range 40 {
		k := claim(strconv.Itoa(n))
		claimed(t, i, k, idempotency.Acquired)
		if err := i.Hold(t.Context(), token(k), "cut off"); err != nil {
			t.Fatal(err)
		}
	}
	list, err := i.List(t.Context(), idempotency.Filter{State: idempotency.Held, Limit: 1000})
	if err != nil || len(list) != 40 {
		t.Errorf("%d records of both nodes, %v; want 40", len(list), err)
	}
	err = c.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error {
		if size := n.DBSize(ctx).Val(); size == 0 || size == 40 {
			return errors.New("all records are on one node")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
