//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// makeRelease keeps the databases of this version for later ones: a release does that.
var makeRelease = flag.String("make-release", "", "keep the databases that this version makes as those of `VERSION`")

// The databases of each released version are in a folder of its name, as its binary
// left them, with what users have in theirs: see [released.work].
const releases = "testdata/releases"

// releaseKey encrypts what is in these databases, and nothing else anywhere.
const releaseKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// A database of each released version goes on under this one: what waited arrives as it
// was accepted, what was done is known, dead letters can be redriven, and tokens and
// idempotency keys are good for what they were.
func TestReleasedDatabases(t *testing.T) {
	server := pgtest.Shared(t)
	if *makeRelease != "" {
		keepReleased(t, server, filepath.Join(releases, *makeRelease))
	}
	versions, err := os.ReadDir(releases)
	if err != nil || len(versions) == 0 {
		t.Fatalf("no database of a release: %v", err)
	}
	for _, v := range versions {
		dir := filepath.Join(releases, v.Name())
		t.Run(v.Name()+" SQLite", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forbear.db")
			unzip(t, filepath.Join(dir, "sqlite.db.gz"), path)
			shift(t, "sqlite", path)
			newReleased(t, path, text(t, filepath.Join(dir, "sqlite.token"))).check()
			reencrypted(t, path)
		})
		t.Run(v.Name()+" PostgreSQL", func(t *testing.T) {
			url := server.Database(t)
			server.Load(t, url, text(t, filepath.Join(dir, "postgres.sql")))
			shift(t, "pgx", url)
			// What processes of that version cannot work beside is applied by an operator.
			if out, err := exec.CommandContext(t.Context(), builtProgram(t), "migrate", "--database", url).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			newReleased(t, url, text(t, filepath.Join(dir, "postgres.token"))).check()
			reencrypted(t, url)
		})
	}
}

// reencrypted encrypts what an earlier version has encrypted as this one does. It says
// that all is, and does nothing the second time.
func reencrypted(t *testing.T, database string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, releaseKey+"\n")
	for _, want := range []string{"rows rewritten", "\n0 rows rewritten"} {
		out, err := exec.CommandContext(t.Context(), builtProgram(t), "database", "reencrypt", "--database", database, "--encryption-key-file", key).CombinedOutput()
		if text := "\n" + string(out); err != nil || !strings.Contains(text, want) || !strings.Contains(text, "every row is encrypted") || strings.Contains(text, "not bound") {
			t.Errorf("%v, want %q\n%s", err, want, out)
		}
	}
}

// keepReleased writes what this version makes of both databases.
func keepReleased(t *testing.T, server *pgtest.Server, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, url, copied := filepath.Join(t.TempDir(), "forbear.db"), server.Database(t), filepath.Join(t.TempDir(), "copy.db")
	write(t, filepath.Join(dir, "sqlite.token"), newReleased(t, file, "").work("sqlite"))
	write(t, filepath.Join(dir, "postgres.token"), newReleased(t, url, "").work("pgx"))
	if out, err := exec.CommandContext(t.Context(), builtProgram(t), "database", "backup", "--database", file, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	zip(t, copied, filepath.Join(dir, "sqlite.db.gz"))
	write(t, filepath.Join(dir, "postgres.sql"), server.Dump(t, url))
}

// released is a serve on the database of a release, and all that it talks to.
type released struct {
	*testing.T
	*served
	database, token string
	web             *httptest.Server // endpoints, and the service behind the gateway
	refuse          atomic.Bool      // whether endpoints other than "well" fail
	paid            atomic.Int32

	mu  sync.Mutex
	got map[string]string // bodies, by endpoint and message
}

func newReleased(t *testing.T, database, token string) *released {
	t.Helper()
	r := &released{T: t, database: database, token: token, got: map[string]string{}}
	r.web = httptest.NewServer(r)
	t.Cleanup(r.web.Close)
	dir := t.TempDir()
	policy, key := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "key")
	write(t, key, releaseKey+"\n")
	write(t, policy, "dependencies: {pay: {url: '"+r.web.URL+"', owner: checkout}}\ngateway:\n  listen: "+freeAddress(t)+
		"\n  routes: [{prefix: /pay, dependency: pay, idempotency: {principal: single}}]\n")
	r.served = run(t, exec.Command(builtProgram(t), "serve", "--config", policy, "--database", database,
		"--encryption-key-file", key, "--allow-target", "127.0.0.0/8", "--drain-delay", "0"))
	return r
}

func (r *released) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	endpoint := strings.TrimPrefix(req.URL.Path, "/hook/")
	switch {
	case !strings.HasPrefix(req.URL.Path, "/hook/"):
		fmt.Fprintf(w, "paid %d", r.paid.Add(1))
		return
	case endpoint == "refuses" && r.refuse.Load():
		w.WriteHeader(http.StatusBadRequest)
		return
	case endpoint == "down" && r.refuse.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[endpoint+" "+req.Header.Get("Webhook-Id")] += string(body)
}

// call makes one call, and reads the response.
func (r *released) call(method, path, body string, header ...string) (status int, text string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

// must is call, of which the response has to be this.
func (r *released) must(want int, method, path, body string) string {
	r.Helper()
	status, text := r.call(method, path, body)
	if status != want {
		r.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// state waits until a message is in a state at its one endpoint.
func (r *released) state(id, want string) {
	r.Helper()
	r.await(r.T, id+" "+want, func() bool {
		_, text := r.call("GET", "/v1/messages/"+id, "")
		return strings.Contains(text, `"state":"`+want+`"`)
	})
}

// work does what users do, and stops. It returns the token that the database knows.
func (r *released) work(driver string) (token string) {
	r.Helper()
	r.refuse.Store(true)
	r.must(200, "PUT", "/v1/applications/shop", `{}`)
	for _, id := range []string{"well", "refuses", "down"} {
		r.must(200, "PUT", "/v1/endpoints/"+id, `{"url":"`+r.web.URL+`/hook/`+id+`","application":"shop","types":["order.*"],"ordered":true}`)
	}
	for _, m := range []string{
		`{"id":"done","endpoints":["well"],"payload":{"of":"done"}}`,
		`{"id":"dead","endpoints":["refuses"],"payload":{"of":"dead"}}`,
		`{"id":"waits","endpoints":["down"],"key":"k","payload":{"of":"waits"}}`,
		`{"id":"behind","endpoints":["down"],"key":"k","payload":{"of":"behind"}}`,
		`{"id":"later","endpoints":["well"],"not_before":"` + time.Now().Add(5*24*time.Hour).UTC().Format(time.RFC3339) + `","payload":{"of":"later"}}`,
		`{"id":"canceled","endpoints":["well"],"not_before":"` + time.Now().Add(5*24*time.Hour).UTC().Format(time.RFC3339) + `","payload":{"of":"canceled"}}`,
	} {
		r.must(202, "POST", "/v1/messages", m)
	}
	r.must(200, "POST", "/v1/messages/canceled/cancel", `{}`)
	r.state("done", "delivered")
	r.state("dead", "dead")
	r.await(r.T, "an attempt at what waits", func() bool {
		_, text := r.call("GET", "/v1/messages/waits", "")
		return strings.Contains(text, `503`)
	})
	for _, id := range []string{"down", "well"} { // what waits has had one attempt or two, however slow the machine is
		r.must(200, "POST", "/v1/endpoints/"+id+"/disable", `{}`)
	}
	if status, text := r.call("POST", "/pay", "10", "Idempotency-Key", "k1"); status != 200 || text != "paid 1" {
		r.Fatalf("%d %s", status, text)
	}
	out, err := exec.CommandContext(r.Context(), builtProgram(r.T), "token", "create", "ops", "--scope", "admin", "--expires", "700d", "-o", "json", "--database", r.database).Output()
	if err != nil {
		r.Fatal(err)
	}
	var made struct{ Token string }
	if err := json.Unmarshal(out, &made); err != nil || made.Token == "" {
		r.Fatalf("%s: %v", out, err)
	}
	r.signal(r.T, syscall.SIGTERM)
	if code := r.wait(r.T); code != 0 {
		r.Fatalf("code %d:\n%s", code, r.log)
	}
	// No process relays this row any more.
	change(r.T, driver, r.database, `INSERT INTO forbear_outbox (message_id, endpoint, type, content_type, body) VALUES ('row', 'well', 'order.made', 'application/json', '{"of":"row"}')`)
	return made.Token
}

// check looks for all that work has left.
func (r *released) check() {
	r.Helper()
	for _, id := range []string{"well", "refuses", "down"} { // the receiver has another port now
		r.must(200, "PATCH", "/v1/endpoints/"+id, `{"url":"`+r.web.URL+`/hook/`+id+`"}`)
	}
	for _, id := range []string{"down", "well"} {
		r.must(200, "POST", "/v1/endpoints/"+id+"/enable", `{}`)
	}
	want := map[string]string{"well row": `{"of":"row"}`, "down waits": `{"of":"waits"}`, "down behind": `{"of":"behind"}`}
	all := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.got) >= len(want)
	}
	r.await(r.T, "what waited", all)
	for _, m := range []struct{ id, state string }{{"done", "delivered"}, {"dead", "dead"}, {"later", "waiting"}, {"canceled", "canceled"}} {
		r.state(m.id, m.state)
	}
	if text := r.must(200, "POST", "/v1/messages", `{"id":"done","endpoints":["well"],"payload":{"of":"done"}}`); !strings.Contains(text, `"duplicate":true`) {
		r.Errorf("a duplicate: %s", text)
	}
	r.must(409, "POST", "/v1/messages", `{"id":"done","endpoints":["well"],"payload":{"of":"another"}}`)
	r.must(202, "POST", "/v1/redrives", `{"filter":{"destination":"refuses"}}`)
	want["refuses dead"] = `{"of":"dead"}`
	r.await(r.T, "the dead letter", all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, body := range r.got {
		if want[key] != body {
			r.Errorf("%s got %q, want %q", key, body, want[key])
		}
	}
	for range 2 {
		if status, text := r.call("POST", "/pay", "10", "Idempotency-Key", "k1"); status != 200 || text != "paid 1" || r.paid.Load() != 0 {
			r.Errorf("a payment that was made: %d %s, and %d more", status, text, r.paid.Load())
		}
	}
	if status, _ := r.call("GET", "/v1/messages", "", "Authorization", "Bearer "+r.token+"x"); status != 401 {
		r.Errorf("another token: %d", status)
	}
	for line := range strings.Lines(r.log.String()) { // the dead letter's alert is sounded anew
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "msg=alert ") {
			r.Errorf("the log: %s", line)
		}
	}
}

// shift brings a database to today: what is in it was made half a minute ago.
func shift(t *testing.T, driver, place string) {
	t.Helper()
	db, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	columns := `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name LIKE 'forbear%' AND c.type = 'BIGINT'`
	if driver == "pgx" {
		columns = `SELECT table_name, column_name FROM information_schema.columns WHERE table_name LIKE 'forbear%' AND data_type = 'bigint'`
	}
	rows, err := db.QueryContext(t.Context(), columns)
	if err != nil {
		t.Fatal(err)
	}
	var list [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	var made int64
	if err := db.QueryRowContext(t.Context(), `SELECT max(applied) FROM forbear_migrations`).Scan(&made); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(-30*time.Second).UnixMicro() - made
	for _, c := range list {
		if c == [2]string{"forbear_messages", "created"} {
			continue // what is encrypted is bound to it
		}
		// Microseconds of this century.
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s = %[2]s + %d WHERE %[2]s BETWEEN 1000000000000000 AND 4000000000000000`, c[0], c[1], later)); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
}

// change runs a statement on a database that no process has.
func change(t *testing.T, driver, place, statement string) {
	t.Helper()
	db, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func zip(t *testing.T, from, to string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text(t, from)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, to, b.String())
}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text(t, from)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(b))
}
