package serve

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
)

// Where versions before have kept the records of a route is known, and whether what is
// found there can only be of the route and the caller that ask.
func TestFormerScopes(t *testing.T) {
	parse := func(text string) *policyfile.File {
		f, err := policyfile.Parse("policy.yaml", []byte("dependencies: {a: {url: 'http://127.0.0.1:1'}, b: {url: 'http://127.0.0.1:2'}}\ngateway: {listen: '127.0.0.1:0', routes: ["+text+"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	in := &ingress{}
	in.former.Store(true)
	const header, single = "idempotency: {principal: {header: X-User}}", "idempotency: {principal: single}"
	for _, tt := range []struct {
		name, routes, scope, want string
	}{
		{"a caller", "{prefix: /x, dependency: a, " + header + "}", "ann b", "ann b true"},
		{"one for all", "{prefix: /x, dependency: a, " + single + "}", " all", "all true"},
		{"another prefix", "{prefix: /x, dependency: a, " + header + "}, {prefix: /x/y, dependency: b, " + header + "}", "ann", "ann true"},
		{"another method", "{prefix: /x, methods: [POST], dependency: a, " + header + "}, {prefix: /x, methods: [PATCH], dependency: b, " + header + "}", "ann", "ann true"},
		{"another host without keys", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /x, host: b.test, dependency: b}", "ann", "ann true"},
		{"another host", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /x, host: b.test, dependency: b, " + single + "}", "ann", "ann false"},
		{"another host above", "{prefix: /x/y, host: a.test, dependency: a, " + header + "}, {prefix: /x, dependency: b, " + header + "}", "ann", "ann false"},
		{"another host beside", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /xy, host: b.test, dependency: b, " + header + "}", "ann", "ann true"},
		{"another header", "{prefix: /x, headers: {X-V: '1'}, dependency: a, " + header + "}, {prefix: /x, dependency: b, " + header + "}", "ann", "ann false"},
		{"a token", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem, issuer: 'https://i'}}}}", "https://i ann%20b", "ann b true"},
		{"a token of any issuer", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem}}}}", "https://i ann", "ann false"},
		{"a token without one", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem}}}}", "ann%25", "ann% false"},
	} {
		file := parse(tt.routes)
		scope, sure := in.formerScope(file, file.Gateway.Routes[0])(tt.scope)
		if got := fmt.Sprint(scope, " ", sure); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Records of an earlier version are looked for only while there may be some: not in a
// database of this version's own, and not when they have expired.
func TestFormerRecordsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forbear.db")
	db, err := database.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, day := time.Now(), 24*time.Hour
	expect := func(what string, later time.Duration, want bool) {
		t.Helper()
		if got := hasFormer(t.Context(), db, 10*day, now.Add(later)); got != want {
			t.Errorf("%s: got %v", what, got)
		}
	}
	expect("a new database", 0, false)
	held := idempotency.Claim{ID: idempotency.ID{Scope: "ann", Key: "k"}, Owner: "o", Lease: time.Second, Retention: day}
	if _, err := db.Idempotency().Claim(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	change := func(text string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	change("UPDATE forbear_migrations SET applied = applied - 86400000000 * 30 WHERE version < 160")
	expect("just upgraded", 0, true)
	expect("nine days later", 9*day, true)
	expect("eleven days later", 11*day, false)
	change("UPDATE forbear_idempotency SET state = 4, created = created - 86400000000")
	expect("eleven days later, with a held one", 11*day, true)
}
