package api_test

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/api/apitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/webhook"
)

func TestApplications(t *testing.T) {
	address, _ := apitest.Start(t)
	token := clitest.File(t, "token", apitest.Token)
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"no verb", "want list, show, add, suspend, resume, rotate or delete", cli.ExitUsage, nil},
		{"add without an id", "needs the id", cli.ExitUsage, []string{"add"}},
		{"an empty list", "no applications: add one with forbear applications add", cli.ExitFound, []string{"list"}},
		{"add", "name        Acme Corp", cli.ExitOK, []string{"add", "acme", "--name", "Acme Corp", "--rate", "100"}},
		{"add it again", "it already exists", cli.ExitFound, []string{"add", "acme"}},
		{"add what cannot be", "max_endpoints", cli.ExitUsage, []string{"add", "x", "--max-endpoints", "5000"}},
		{"list", "acme  Acme Corp  active  100", cli.ExitOK, []string{"list"}},
		{"suspend", "unpaid", cli.ExitOK, []string{"suspend", "acme", "--reason", "unpaid"}},
		{"a list with a reason", "suspended  100   100            unpaid", cli.ExitOK, []string{"list"}},
		{"resume", "acme", cli.ExitOK, []string{"resume", "acme"}},
		{"show", `"name":"Acme Corp"`, cli.ExitOK, []string{"show", "acme", "-o", "json"}},
		{"show none", "not found", cli.ExitFound, []string{"show", "none"}},
		{"rotate what has none", "it has no secrets", cli.ExitUsage, []string{"rotate", "acme"}},
		{"add one that signs", "***", cli.ExitOK, []string{"add", "signing", "--secret", webhook.NewSecret()}},
		{"rotate", "secret       whsec_", cli.ExitOK, []string{"rotate", "signing", "--overlap", "1h"}},
		{"rotated it shows no secret", `old_secrets  [{"secret":"***"`, cli.ExitOK, []string{"show", "signing"}},
		{"delete", "acme is deleted", cli.ExitOK, []string{"delete", "acme"}},
		{"delete it again", "not found", cli.ExitFound, []string{"delete", "acme"}},
	} {
		got := clitest.Run(t, api.Applications(), "", append(c.args, "--api", address, "--api-token-file", token, "--actor", "ann")...)
		if got.Code != c.code || !strings.Contains(got.Out+got.Errors, c.want) {
			t.Errorf("%s: %+v, want %d and %q", c.name, got, c.code, c.want)
		}
	}
}
