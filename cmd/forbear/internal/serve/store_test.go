package serve

import (
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// A process whose database is gone says so to its probes, at both addresses, and in the
// log; it acknowledges nothing meanwhile.
func TestReadyGoesByTheDatabase(t *testing.T) {
	database := filepath.Join(t.TempDir(), "forbear.db")
	beside := closed(t)
	s := startServe(t, "--config", clitest.File(t, "policy.yaml", "service: checkout\n"), "--database", database, "--listen", "127.0.0.1:0", "--admin", "off",
		"--metrics", strings.TrimPrefix(beside, "http://"))
	ready := func(code int, state string) {
		t.Helper()
		for _, base := range []string{s.base, beside} {
			want := `{"status":"` + state + `"}` + "\n"
			got, body := status(t, "GET", base+"/health/ready", "")
			for end := time.Now().Add(time.Minute); (got != code || body != want) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				got, body = status(t, "GET", base+"/health/ready", "")
			}
			if got != code || body != want {
				t.Errorf("%s: %d %s, want %d %s", base, got, body, code, want)
			}
		}
	}
	if code, body := status(t, "PUT", s.base+"/v1/endpoints/a", `{"url":"https://a.example/hook"}`); code/100 != 2 {
		t.Fatalf("%d %s", code, body)
	}
	ready(200, "ok")
	if err := os.Rename(database, database+".old"); err != nil {
		t.Fatal(err)
	}
	ready(503, "database: its file was moved, replaced or deleted")
	if code, _ := status(t, "POST", s.base+"/v1/messages", `{"endpoint":"a","payload":{}}`); code != 503 {
		t.Errorf("a message: %d", code)
	}
	if code, _ := status(t, "GET", s.base+"/health/live", ""); code != 200 {
		t.Errorf("live: %d", code)
	}
	if !strings.Contains(s.log.String(), "level=ERROR msg=\"the database accepts no messages") {
		t.Errorf("the log does not say it: %s", s.log)
	}
	if err := os.Rename(database+".old", database); err != nil {
		t.Fatal(err)
	}
	ready(200, "ok")
	if !strings.Contains(s.log.String(), "the database accepts messages again") {
		t.Errorf("the log does not say that it is back: %s", s.log)
	}
}

// So does one that delivers nothing and stores idempotency keys.
func TestReadyOfKeysAlone(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	database := filepath.Join(t.TempDir(), "forbear.db")
	s := startServe(t, "--config", clitest.File(t, "policy.yaml", ingressPolicy(up.URL, "{principal: single}")), "--database", database, "--no-delivery", "--admin", "off")
	if code, body := status(t, "GET", s.base+"/health/ready", ""); code != 200 {
		t.Errorf("before: %d %s", code, body)
	}
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	code, body := 0, ""
	for end := time.Now().Add(time.Minute); code != 503 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		code, body = status(t, "GET", s.base+"/health/ready", "")
	}
	if code != 503 || !strings.Contains(body, "deleted") {
		t.Errorf("after: %d %s", code, body)
	}
}

// The file of an application is left as it is until its operator allows more, and the
// refusal names how.
func TestSharedDatabase(t *testing.T) {
	database := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	policy := clitest.File(t, "policy.yaml", "service: checkout\n")
	before, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	got := clitest.Run(t, Command(), "", "--config", policy, "--database", database, "--listen", "127.0.0.1:0", "--admin", "off")
	if got.Code == 0 || !strings.Contains(got.Errors, "--shared-database") {
		t.Errorf("without the flag: %+v", got)
	}
	if after, err := os.ReadFile(database); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
	s := startServe(t, "--config", policy, "--database", database, "--shared-database", "--listen", "127.0.0.1:0", "--admin", "off")
	if code, body := status(t, "GET", s.base+"/v1/endpoints", ""); code != 200 {
		t.Errorf("with it: %d %s", code, body)
	}
	s.stop()
	s = startServe(t, "--config", policy, "--database", database, "--listen", "127.0.0.1:0", "--admin", "off")
	if code, body := status(t, "GET", s.base+"/v1/endpoints", ""); code != 200 {
		t.Errorf("without it, when it has forbear's tables: %d %s", code, body)
	}
}

// What the environment names as the database is not shown with its password.
func TestHelpShowsNoPassword(t *testing.T) {
	t.Setenv("FORBEAR_DATABASE", "postgres://forbear:hunter2@db.example.com/shop")
	got := clitest.Run(t, Command(), "", "--help")
	if all := got.Out + got.Errors; strings.Contains(all, "hunter2") || !strings.Contains(all, "postgres://db.example.com/shop") {
		t.Errorf("help: %s", all)
	}
}
