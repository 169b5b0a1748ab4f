//forbear:plain nothing runs at once
package keys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/idempotency"
)

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forbear.db")
	db, err := database.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := func(args ...string) (int, string) {
		var out strings.Builder
		code := Command().Run(t.Context(), &cli.Streams{Out: &out, Err: &out}, append([]string{args[0], "--database", path}, args[1:]...))
		return code, out.String()
	}
	if code, _ := keys("list"); code != cli.ExitFound {
		t.Errorf("an empty list: exit code %d", code)
	}
	const planted = "planted-0b8a6a0e" // what must not be printed
	store := db.Idempotency()
	id := idempotency.ID{Scope: "t1", Key: idempotency.Digest("k")}
	claim := func(owner string) idempotency.Verdict {
		v, err := store.Claim(t.Context(), idempotency.Claim{ID: id, Fingerprint: "f", Operation: "POST /pay", Owner: owner, Lease: time.Minute, Retention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	claim("a")
	if code, text := keys("settle", "--undone", "--why", "x", "t1", id.Key); code != cli.ExitFound {
		t.Errorf("a running one: %d %s", code, text)
	}
	if err := store.Hold(t.Context(), idempotency.Token{ID: id, Owner: "a", Fence: 1}, "cut off"); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json"} {
		if code, text := keys("list", "-o", format); code != cli.ExitOK || !strings.Contains(text, id.Key) || !strings.Contains(text, "cut off") {
			t.Errorf("list: %d %s", code, text)
		}
	}
	if _, text := keys("list"); strings.Contains(text, "there may be more") {
		t.Errorf("all are listed: %s", text)
	}
	if code, text := keys("list", "--limit", "1"); code != cli.ExitOK || !strings.Contains(text, "there may be more") {
		t.Errorf("a full list: %d %s", code, text)
	}
	for _, bad := range [][]string{
		{"settle", "--undone", "t1", id.Key},
		{"settle", "--why", "x", "t1", id.Key},
		{"settle", "--undone", "--done", "201", "--why", "x", "t1", id.Key},
		{"settle", "--done", "503", "--why", "x", "t1", id.Key},
		{"settle", "--undone", "--why", "x", "t1"},
		{"list", "--state", "lost"},
		{"list", "--key", planted},
		{"show", "t1"},
		{"show", "t1", planted}, // no digest
		{"show", "--key", planted, "t1", id.Key},
		{"show", "--key", planted + " with a space"},
		{"show", "--source", "shop"},
		{"settle", "--undone", "--why", "x", "t1", planted},
		{"settle", "--undone", "--why", "x", "--body", path, "t1", id.Key},
		{"settle", "--done", "201", "--why", "x", "--body", path, "t1", id.Key}, // of no media type
		{"settle", "--done", "201", "--why", "x", "--header", "Content-Type: a/b", "--body", path + "-", "t1", id.Key},
		{"settle", "--done", "201", "--why", "x", "--header", "Set-Cookie: " + planted, "t1", id.Key},
		{"settle", "--done", "201", "--why", "x", "--key", "-", "--body", "-"},
		{"drop"},
	} {
		if code, text := keys(bad...); code != cli.ExitUsage || strings.Contains(text, planted) {
			t.Errorf("%v: %d %s", bad, code, text)
		}
	}
	if code, text := keys("show", "t1", "-"+id.Key[1:]); code != cli.ExitFound {
		t.Errorf("a digest that begins with a dash: %d %s", code, text)
	}
	if code, text := keys("settle", "--done", "201", "--why", "in the ledger", "--actor", "ann", "t1", id.Key); code != cli.ExitOK {
		t.Fatalf("settle: %d %s", code, text)
	}
	if v := claim("b"); v.Outcome != idempotency.Replay || v.Record.Response.Status != 201 {
		t.Errorf("a duplicate gets %+v", v)
	}
	audit, err := db.DeadLetters().AuditTrail(t.Context(), 10)
	if err != nil || len(audit) == 0 || audit[0].Who != "ann" || audit[0].Action != "settle" {
		t.Errorf("audit %+v, %v", audit, err)
	}
}

// A digest may begin with a dash, so that flags behind one are not flags: the error says so.
func TestFlagsComeFirst(t *testing.T) {
	got := clitest.Run(t, Command(), "", "show", "tenant-7", "0eYw", "--database", "forbear.db")
	if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "flags must come before other arguments") {
		t.Errorf("got %+v", got)
	}
}

// A misspelt database is not made.
func TestKeysOfNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "misspelt.db")
	r := clitest.Run(t, Command(), "", "list", "--database", path)
	if _, err := os.Stat(path); r.Code != cli.ExitUsage && r.Code != cli.ExitFound || !strings.Contains(r.Errors, "does not exist") || err == nil {
		t.Errorf("got %+v, %v", r, err)
	}
}
