package redisstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// The scripts say what Claim.Against says: the store in memory, which runs it,
// and this one are given the same operations at the same times. Redis's clock
// cannot be moved, so all that is stored there becomes older.
func TestScriptsAgreeWithTheStateMachine(t *testing.T) {
	s := startRedis(t)
	i, c := openKeys(t, s, redisstore.IdempotencyOptions{}), client(t, s)
	for seed := range uint64(150) {
		emptied(t, s)
		m := &model{t: t, began: time.Now(), redis: i, client: c, rng: rand.New(rand.NewPCG(seed, 1)), id: idempotency.ID{Scope: "s", Key: fmt.Sprint("k", seed)}}
		m.memory = &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(m.offset) }}
		for range 25 {
			m.step()
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(m.log, "\n"))
		}
	}
}

type model struct {
	t      *testing.T
	began  time.Time
	memory *memstore.Idempotency
	redis  *redisstore.Idempotency
	client *redis.Client
	rng    *rand.Rand
	id     idempotency.ID
	offset time.Duration
	claims []idempotency.Token
	log    []string
}

// step does one thing to both stores. Times are whole hours, far apart from the
// microseconds between the two.
func (m *model) step() {
	k := idempotency.Token{ID: m.id, Owner: "nobody"}
	if n := len(m.claims); n > 0 {
		k = m.claims[max(n-1-m.rng.IntN(3), 0)]
	}
	a := idempotency.Response{Status: 200 + m.rng.IntN(100)}
	hours := time.Duration(1+m.rng.IntN(4)) * 2 * time.Hour
	ctx := m.t.Context()
	switch n := m.rng.IntN(20); {
	case n < 8:
		m.claim(idempotency.Claim{
			ID: m.id, Fingerprint: []string{"f1", "f1", "f1", "f2"}[m.rng.IntN(4)], Owner: fmt.Sprint("o", len(m.claims)),
			Lease: hours, Retention: 3 * hours, Rerun: m.rng.IntN(2) == 0,
		})
	case n < 12:
		by := hours - time.Hour
		m.offset += by
		m.note("advance %v", by)
		m.age(by)
	case n < 14:
		m.same("renew", m.memory.Renew(ctx, k, hours), m.redis.Renew(ctx, k, hours))
	case n < 16:
		m.same("complete", m.memory.Complete(ctx, k, a, hours), m.redis.Complete(ctx, k, a, hours))
	case n < 17:
		m.same("release", m.memory.Release(ctx, k), m.redis.Release(ctx, k))
	case n < 18:
		m.same("hold", m.memory.Hold(ctx, k, "why"), m.redis.Hold(ctx, k, "why"))
	case n < 19:
		r := idempotency.Resolution{By: "ann"}
		if m.rng.IntN(2) == 0 {
			r.Response = &a
		}
		m.same("resolve", m.memory.Resolve(ctx, m.id, r), m.redis.Resolve(ctx, m.id, r))
	default:
		one, _ := m.memory.Sweep(ctx, 10)
		two, _ := m.redis.Sweep(ctx, 10)
		m.note("sweep: %d, %d", one, two)
		if one != two {
			m.t.Errorf("swept %d in memory, %d on Redis", one, two)
		}
	}
	m.compare()
}

// age makes what is stored older, but lets the server delete none of it: here
// both must keep the fence.
func (m *model) age(by time.Duration) {
	ctx, name := m.t.Context(), "forbear:key:1:s:"+m.id.Key
	for _, f := range []string{"lease", "created", "completed", "expires"} {
		if m.client.HExists(ctx, name, f).Val() {
			m.client.HIncrBy(ctx, name, f, -by.Microseconds())
		}
	}
	if ttl := m.client.PTTL(ctx, name).Val(); ttl > 0 {
		m.client.PExpire(ctx, name, max(ttl-by, time.Minute))
	}
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) claim(c idempotency.Claim) {
	one, err1 := m.memory.Claim(m.t.Context(), c)
	two, err2 := m.redis.Claim(m.t.Context(), c)
	m.note("claim %s rerun %v: %d %d", c.Fingerprint, c.Rerun, one.Outcome, two.Outcome)
	if err1 != nil || err2 != nil || one.Outcome != two.Outcome {
		m.t.Errorf("claim: %d %v in memory, %d %v on Redis", one.Outcome, err1, two.Outcome, err2)
	}
	if d := one.LeaseLeft - two.LeaseLeft; d.Abs() > time.Minute {
		m.t.Errorf("claim: lease left %v in memory, %v on Redis", one.LeaseLeft, two.LeaseLeft)
	}
	if one.Outcome == idempotency.Acquired {
		m.claims = append(m.claims, idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: one.Record.Fence})
	}
}

// same allows for what only Redis does: it takes the end of a claim twice.
func (m *model) same(what string, one, two error) {
	m.note("%s: %v, %v", what, one, two)
	for _, e := range []error{idempotency.ErrFenced, idempotency.ErrNotFound, idempotency.ErrNotHeld} {
		if errors.Is(two, e) != errors.Is(one, e) && (two != nil || !errors.Is(one, idempotency.ErrFenced)) {
			m.t.Errorf("%s: %v in memory, %v on Redis", what, one, two)
		}
	}
}

// compare looks at what both have stored.
func (m *model) compare() {
	one, err1 := m.memory.Get(m.t.Context(), m.id)
	two, err2 := m.redis.Get(m.t.Context(), m.id)
	text := func(r idempotency.Record, err error) string {
		status := 0
		if r.Response != nil && r.State == idempotency.Completed {
			status = r.Response.Status
		}
		ago := func(at time.Time) string {
			if at.IsZero() {
				return "never"
			}
			return at.Sub(m.began).Round(time.Hour).String() // far from half an hour
		}
		return fmt.Sprint(errors.Is(err, idempotency.ErrNotFound), r.State, r.Fingerprint, r.Rerun, r.Owner, r.Fence, r.Attempt, r.Note, status,
			ago(r.Created), ago(r.LeaseEnd), ago(r.Completed), ago(r.Expires))
	}
	for _, at := range []*time.Time{&one.Created, &one.LeaseEnd, &one.Completed, &one.Expires} {
		if !at.IsZero() {
			*at = at.Add(-m.offset).UTC()
		}
	}
	one.HoldAbandoned(time.Now()) // as a sweep does, which the other leaves to who reads
	two.HoldAbandoned(time.Now())
	if a, b := text(one, err1), text(two, err2); a != b {
		m.t.Errorf("stored:\n memory %s\n redis  %s", a, b)
	}
}
