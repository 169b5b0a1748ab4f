package dlq

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/migrate"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
)

// deadDatabase returns a database with n letters, under a key when there is a
// file of one.
func deadDatabase(t *testing.T, n int, keyFile string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forbear.db")
	c, err := database.Cipher(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), path, sqlstore.WithCipher(c))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := db.DeadLetters().Put(t.Context(), dead(i)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func dead(i int) deadletter.Letter {
	return deadletter.Letter{
		ID: fmt.Sprint("l", i), Queue: "webhooks", Destination: "acme", EventID: "evil\x1b[2J", Reason: "exhausted", ErrorType: "http_503", Description: "exhausted (http_503) after 5 attempts",
		Error: `key "planted-quote" is unknown`, Chain: []string{"*fmt.wrapError", "*errors.errorString"}, Panic: "nil map", Stack: "main.charge()\n\t/app/main.go:7\x1b[2J", TraceID: "0af7651916cd43dd8448eb211c80319c",
		History: []deadletter.Attempt{{Number: 1, ErrorType: "http_503", Error: `key "planted-quote" is unknown`}},
		Payload: []byte("planted-payload"), Headers: []deadletter.Header{{Name: "Authorization", Value: "planted-token"}}, State: deadletter.Dead,
	}
}

// Each verb says what it did, as text and as JSON, and what is wrong with its
// arguments.
func TestDLQVerbs(t *testing.T) {
	db := deadDatabase(t, 3, "")
	empty := deadDatabase(t, 0, "")
	missing := filepath.Join(t.TempDir(), "misspelt.db")
	l := dead(0)
	cause := l.Fingerprint()
	for _, c := range []struct {
		args string
		code int
		want string // on standard output when the code is 0, on standard error otherwise
	}{
		{"stats", 0, "webhooks  exhausted  dead   3"},
		{"stats", 0, "3      acme         http_503"},
		{"stats", 0, "l2      nil map"},
		{"stats -o json", 0, `"count":3`},
		{"stats -o json", 0, `"causes":[{"cause":"` + cause + `"`},
		{"list --cause " + cause, 0, "l2"},
		{"list --cause 0123456789ab", 1, "no such dead letters"},
		{"redrive --cause " + cause + " --dry-run", 0, "3 dead letters would be redriven"},
		{"show l1", 0, `error        key "***" is unknown`},
		{"show l1", 0, "types        *fmt.wrapError > *errors.errorString"},
		{"show l1", 0, "cause        " + cause},
		{"show l1", 0, "panic        nil map"},
		{"show l1", 0, "    /app/main.go:7[2J"},
		{"show l1", 0, "trace        0af7651916cd43dd8448eb211c80319c"},
		{"show l1", 0, `  error      key "***" is unknown`},
		{"show l1 -o json", 0, `"error":"key \"***\" is unknown","error_chain":["*fmt.wrapError","*errors.errorString"],"panic":"nil map"`},
		{"show l1 --reveal", 0, `error        key "planted-quote" is unknown`},
		{"list", 0, "l1  dead   exhausted  http_503  acme         evil[2J"},
		{"list --limit 2 -o json", 0, `{"id":"l0"`},
		{"list --after l2", 1, "no such dead letters"},
		{"list --since 1h --state dead --reason exhausted --error-type http_503", 0, "l2"},
		{"list --until 1h", 1, "no such dead letters"},
		{"show l1", 0, "payload      *** (add --reveal"},
		{"show l1 --reveal --actor bob", 0, "payload      planted-payload"},
		{"show l1 -o json", 0, `"value":"***"`},
		{"export", 0, `"destination":"acme"`},
		{"export", 0, `"payload":null}`},
		{"export --reveal", 0, `"payload":"cGxhbnRlZC1wYXlsb2Fk"}`},
		{"export --state resolved", 1, "no such dead letters"},
		{"redrive --all --dry-run", 0, "3 dead letters would be redriven"},
		{"redrive l1 --dry-run", 0, "1 dead letter would be redriven"},
		{"redrive --destination acme --dry-run -o json", 0, `{"count":3,"dry_run":true}`},
		{"redrive l2 --rate 5", 0, "1 dead letter, at 5 a second; a running forbear serve sends them"},
		{"redrive --all --queue orders", 1, "no letters of queue orders match"},
		{"redrives", 0, "running  0     1      0          0        5/s"},
		{"redrives --limit 1", 0, "there may be more: add --after rdr_"},
		{"redrives --after none", 1, "no redrives"},
		{"redrives --application other", 1, "no redrives"},
		{"discard l0 --why duplicate -o json", 0, `{"id":"l0","state":"discarded"}`},
		{"discard l0 --why duplicate", 1, "is discarded"},
		{"discard --destination acme --dry-run", 0, "2 dead letters would be discarded"},
		{"discard --reason exhausted --error-type none --why over", 1, "no such dead letters"},
		{"discard --destination acme --why over -o json", 0, `{"count":2,"dry_run":false}`},
		{"audit", 0, "bob"},

		{"", 2, "want stats, list, show,"},
		{"explode", 2, `unknown verb "explode": want stats, list,`},
		{"show", 2, "show needs the id of a letter"},
		{"show none", 1, `dead letter "none": not found`},
		{"list l1", 2, `list: unexpected argument "l1"`},
		{"show l1 l2", 2, `show: unexpected argument "l2"`},
		{"list --limit 0", 2, "--limit 0 is outside 1 to 1000"},
		{"list --state undead", 2, "want dead, redriving, resolved or discarded"},
		{"list --since yesterday", 2, "or an age such as 24h"},
		{"list -o yaml", 2, `unknown format "yaml"`},
		{"list --colour", 2, "see forbear dlq --help"},
		{"discard l1", 2, "discard needs --why REASON"},
		{"discard --why over", 2, "which letters?"},
		{"discard l1 --destination acme --why over", 2, "an id or a filter"},
		{"discard --state resolved --why over", 2, "cannot be discarded"},
		{"redrive", 2, "which letters?"},
		{"redrive none", 1, `dead letter "none": not found`},
		{"redrive l0", 1, "no dead letters to redrive"},
		{"redrive --all --rate 1000", 2, "rate 1000 is outside 0 to 500"},
		{"redrive --all --stop-ratio 2", 2, "stop_ratio 2 is outside 0 to 1"},
		{"pause", 2, "pause needs the id of a redrive"},
		{"pause none", 1, `redrive "none"`},
		{"read " + missing, 2, "misspelt.db"},
		{"list --database " + missing, 2, "database " + missing + " does not exist"},
		{"list --database mysql://x", 2, "want postgres://"},
		{"list --database " + empty, 1, "no such dead letters"},
		{"redrives --database " + empty, 1, "no redrives"},
		{"stats -o json --database " + empty, 0, "[]"},
	} {
		args := strings.Fields(c.args)
		if !strings.Contains(c.args, "--database") {
			args = append(args, "--database", db)
		}
		if c.args == "" {
			args = nil
		}
		r := clitest.Run(t, Command(), "", args...)
		got := r.Out + r.Errors
		if c.code != 0 {
			got = r.Errors
		}
		if r.Code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("dlq %s: exit %d, %q %q; want %d and %q", c.args, r.Code, r.Out, r.Errors, c.code, c.want)
		}
		if strings.Contains(r.Out, "planted") && !strings.Contains(c.args, "--reveal") {
			t.Errorf("dlq %s shows a secret: %s", c.args, r.Out)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a misspelt name has made a database")
	}
}

// A redrive can be held, let go and given up, and each is written down.
func TestDLQHoldsARedrive(t *testing.T) {
	db := deadDatabase(t, 2, "")
	r := clitest.Run(t, Command(), "", "redrive", "--all", "-o", "json", "--actor", "ann", "--database", db)
	var j queue.Job
	if err := json.Unmarshal([]byte(r.Out), &j); err != nil || j.Total != 2 {
		t.Fatalf("%+v: %v", r, err)
	}
	for _, c := range []struct {
		verb string
		code int
	}{{"pause", 0}, {"resume", 0}, {"cancel", 0}, {"resume", 1}} {
		if r := clitest.Run(t, Command(), "", c.verb, j.ID, "--actor", "ann", "--database", db); r.Code != c.code {
			t.Errorf("%s: %+v, want exit %d", c.verb, r, c.code)
		}
	}
	r = clitest.Run(t, Command(), "", "audit", "--database", db)
	for _, action := range []string{"redrive-start", "redrive-paused", "redrive-running", "redrive-canceled"} {
		if !strings.Contains(r.Out, action) {
			t.Errorf("the audit has no %s:\n%s", action, r.Out)
		}
	}
}

// With a key, what lies in the store and in an export is encrypted, and dlq
// reads both under the same key.
func TestDLQWithEncryption(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, bytes.Repeat([]byte("k"), 32), 0o600); err != nil {
		t.Fatal(err)
	}
	db := deadDatabase(t, 1, key)
	if r := clitest.Run(t, Command(), "", "show", "l0", "--reveal", "--database", db, "--encryption-key-file", key); r.Code != 0 || !strings.Contains(r.Out, "planted-payload") {
		t.Errorf("with the key: %+v", r)
	}
	for verb, want := range map[string]string{"list": "without payload and headers", "show l0": "payload      dead letter", "export": `"unreadable":"dead letter`} {
		r := clitest.Run(t, Command(), "", append(strings.Fields(verb), "--database", db)...)
		if r.Code != 0 || !strings.Contains(r.Out+r.Errors, want) || !strings.Contains(r.Out+r.Errors, "encrypted under a key that this process lacks") || strings.Contains(r.Out+r.Errors, "planted") {
			t.Errorf("%s without the key: %+v", verb, r)
		}
	}
	if r := clitest.Run(t, Command(), "", "export", "--reveal", "--database", db); r.Code != 2 || strings.Contains(r.Out+r.Errors, "planted") {
		t.Errorf("exported without the key: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "show", "l0", "--reveal", "--database", db); r.Code != 2 || strings.Contains(r.Out+r.Errors, "planted") {
		t.Errorf("without the key: %+v", r)
	}
	c, err := database.Cipher(key)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := queue.ExportSealed(&b, dead(7), c); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dead-letters-2026-03-01.jsonl")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil || bytes.Contains(b.Bytes(), []byte("planted")) {
		t.Fatalf("%s, %v", b.Bytes(), err)
	}
	if r := clitest.Run(t, Command(), "", "read", file, "--database", db, "--encryption-key-file", key); r.Code != 0 || !strings.Contains(r.Out, `"id":"l7"`) || strings.Contains(r.Out, "cGxhbnRlZC1wYXlsb2Fk") {
		t.Errorf("masked: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "read", "--reveal", file, "--database", db, "--encryption-key-file", key); r.Code != 0 || !strings.Contains(r.Out, "cGxhbnRlZC1wYXlsb2Fk") {
		t.Errorf("revealed: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "read", file, "--database", db); r.Code != 2 || !strings.Contains(r.Errors, "line 1: encrypted: give its key with --encryption-key-file") {
		t.Errorf("without the key: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "audit", "--database", db); !strings.Contains(r.Out, "file "+file) {
		t.Errorf("the audit: %+v", r)
	}
}

// A database of an earlier version is not changed behind the back of the
// processes that work on it.
func TestDLQLeavesAnOldSchemaAlone(t *testing.T) {
	path := deadDatabase(t, 1, "")
	raw, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.Exec("DELETE FROM forbear_migrations WHERE version = 20"); err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(t, Command(), "", "list", "--database", path); r.Code != 2 || !strings.Contains(r.Errors, "0020_identity") || !strings.Contains(r.Errors, "forbear migrate") {
		t.Errorf("got %+v", r)
	}
	if r := clitest.Run(t, migrate.Command(), "", "--status", "--database", path); r.Code != 1 || !strings.Contains(r.Out, "missing") {
		t.Errorf("the status is %+v", r)
	}
}

// An export that was not asked to reveal has no payloads, and nothing in their place
// that base64 would make one of. It says so beside the file.
func TestExportSaysWhatItLeavesOut(t *testing.T) {
	db := deadDatabase(t, 3, "")
	for _, c := range []struct {
		args string
		says bool
	}{{"export", true}, {"export --reveal", false}} {
		r := clitest.Run(t, Command(), "", append(strings.Fields(c.args), "--database", db)...)
		if r.Code != 0 || strings.Count(r.Out, "\n") != 3 {
			t.Fatalf("%s: %+v", c.args, r)
		}
		if says := strings.Count(r.Errors, "\n") == 1 && strings.Contains(r.Errors, "are masked: add --reveal"); says != c.says || !c.says && r.Errors != "" {
			t.Errorf("%s says %q", c.args, r.Errors)
		}
		n := 0
		err := queue.ReadExport(strings.NewReader(r.Out), nil, func(l deadletter.Letter) error {
			n++
			if want := map[bool]string{true: "", false: "planted-payload"}[c.says]; string(l.Payload) != want || c.says && l.Payload != nil {
				t.Errorf("%s has the payload %q", c.args, l.Payload)
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%s: read %d letters, %v", c.args, n, err)
		}
	}
}

// A caller that waits for a redrive sees from the exit code whether all letters have arrived.
func TestRedriveThatIsWaitedFor(t *testing.T) {
	for outcome, code := range map[deadletter.RedriveResult]int{deadletter.RedriveDelivered: 0, deadletter.RedriveDead: 1} {
		path := deadDatabase(t, 2, "")
		db, err := database.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		letters := db.DeadLetters()
		r := queue.NewRedriver(letters, "w", map[string]queue.Target{"webhooks": func(ctx context.Context, l deadletter.Letter) error {
			return letters.RecordRedrive(ctx, l.ID, outcome)
		}}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		got := clitest.Run(t, Command(), "", "redrive", "--all", "--wait", "--database", path)
		if got.Code != code || strings.Contains(got.Out, "forbear dlq stats says why") != (code == 1) {
			t.Errorf("%s: got %+v, want the code %d", outcome, got, code)
		}
		cancel()
		<-ended
		_ = db.Close()
	}
}
