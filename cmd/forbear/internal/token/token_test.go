//forbear:plain nothing runs at once
package token

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/sqlstore"
)

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forbear.db")
	token := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, Command(), "", append(args, "--database", path)...)
	}
	made := token("create", "deploy", "--scope", "admin", "--expires", "30d")
	if made.Code != cli.ExitOK || !strings.HasPrefix(made.Out, "forbear_") || strings.Count(made.Out, "\n") != 1 {
		t.Fatalf("made: %+v", made)
	}
	var second struct{ Name, Token, Scope string }
	if got := token("create", "board", "-o", "json"); json.Unmarshal([]byte(got.Out), &second) != nil || second.Scope != "read-only" || !strings.HasPrefix(second.Token, "forbear_") {
		t.Errorf("made: %+v", got)
	}
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"no verb", "want create, list or revoke", cli.ExitUsage, nil},
		{"no name", "create needs one name", cli.ExitUsage, []string{"create"}},
		{"a name that is taken", "a token of this name exists", cli.ExitUsage, []string{"create", "deploy"}},
		{"a scope that is none", `scope "root": want admin`, cli.ExitUsage, []string{"create", "x", "--scope", "root"}},
		{"an application that is none", `unknown application "acme"`, cli.ExitUsage, []string{"create", "x", "--scope", "application", "--application", "acme"}},
		{"a list", "deploy                   admin", cli.ExitOK, []string{"list"}},
		{"a token that is none", `token "none": no such token`, cli.ExitFound, []string{"revoke", "none"}},
		{"one is revoked", "deploy is revoked", cli.ExitOK, []string{"revoke", "deploy"}},
	} {
		got := token(c.args...)
		if got.Code != c.code || !strings.Contains(got.Out+got.Errors, c.want) || strings.Contains(got.Out+got.Errors, strings.TrimSpace(made.Out)) {
			t.Errorf("%s: %+v, want %d and %q", c.name, got, c.code, c.want)
		}
	}
	if got := token("list"); strings.Contains(got.Out, "deploy") || !strings.Contains(got.Out, "board") {
		t.Errorf("left is %s", got.Out)
	}
	db, err := database.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	trail, err := db.DeadLetters().AuditTrail(t.Context(), 10)
	if err != nil || len(trail) != 3 || trail[0].Action != "token-revoke" || trail[0].Target != "deploy" {
		t.Errorf("the audit has %+v, %v", trail, err)
	}
	if got := token("revoke", "board"); got.Code != cli.ExitOK || !strings.Contains(got.Errors, "no token is left") || !strings.Contains(got.Errors, "forbear token create") {
		t.Errorf("the last one: %+v", got)
	}
	for i := range listed + 1 {
		if _, _, err := db.Tokens().Create(t.Context(), sqlstore.Token{Name: fmt.Sprintf("more-%d", i), Scope: sqlstore.ScopeReadOnly}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if got := token("list"); strings.Count(got.Out, "\n") != listed+1 {
		t.Errorf("the list has %d lines, want the %d tokens", strings.Count(got.Out, "\n"), listed+1)
	}
}
