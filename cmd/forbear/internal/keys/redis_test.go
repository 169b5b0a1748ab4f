package keys

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

// The records of a service that keeps them in Redis are settled by the same
// command, with name and reason in the record.
func TestKeysOnRedis(t *testing.T) {
	url := redistest.Database(t)
	store, err := redisstore.OpenIdempotency(t.Context(), url, redisstore.IdempotencyOptions{Prefix: "pay:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	keys := func(args ...string) (int, string) {
		var out strings.Builder
		code := Command().Run(t.Context(), &cli.Streams{Out: &out, Err: &out}, append([]string{args[0], "--database", url}, args[1:]...))
		return code, out.String()
	}
	claim := idempotency.Claim{ID: idempotency.ID{Scope: "t1", Key: idempotency.Digest("k")}, Fingerprint: "f", Operation: "POST /pay", Owner: "a", Lease: time.Minute, Retention: time.Hour}
	if _, err := store.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := store.Hold(t.Context(), idempotency.Token{ID: claim.ID, Owner: "a", Fence: 1}, "cut off"); err != nil {
		t.Fatal(err)
	}
	if code, text := keys("list"); code != cli.ExitFound {
		t.Errorf("under another prefix: %d %s", code, text)
	}
	if code, text := keys("list", "--prefix", "pay:"); code != cli.ExitOK || !strings.Contains(text, "cut off") {
		t.Errorf("list: %d %s", code, text)
	}
	if code, text := keys("settle", "--prefix", "pay:", "--done", "201", "--why", "in the ledger", "--actor", "ann", "t1", claim.ID.Key); code != cli.ExitOK {
		t.Fatalf("settle: %d %s", code, text)
	}
	claim.Owner = "b"
	v, err := store.Claim(t.Context(), claim)
	if err != nil || v.Outcome != idempotency.Replay || v.Record.Response.Status != 201 {
		t.Errorf("a duplicate gets %+v, %v", v, err)
	}
	if code, text := keys("list", "--prefix", "pay:", "--state", "completed"); code != cli.ExitOK || !strings.Contains(text, "ann") || !strings.Contains(text, "in the ledger") {
		t.Errorf("who and why: %d %s", code, text)
	}
}

// A password in a URL is not shown.
func TestKeysKeepsPasswords(t *testing.T) {
	var out strings.Builder
	code := Command().Run(t.Context(), &cli.Streams{Out: &out, Err: &out}, []string{"list", "--database", "redis://:planted@127.0.0.1:1/0"})
	if code != cli.ExitUsage || strings.Contains(out.String(), "planted") {
		t.Errorf("%d %s", code, out.String())
	}
}
