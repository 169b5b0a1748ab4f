package api_test

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/api/apitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestEndpoints(t *testing.T) {
	address, receiver := apitest.Start(t)
	t.Setenv(cli.EnvAPIToken, apitest.Token)
	file := clitest.File(t, "b.json", `{"url":"`+receiver.URL+`/ok","rate":5}`)
	for _, c := range []struct {
		name, want string
		code       int
		stdin      string
		args       []string
	}{
		{"no verb", "want list, show, add, enable, disable, test, rotate or delete", cli.ExitUsage, "", nil},
		{"a verb that is none", "unknown verb", cli.ExitUsage, "", []string{"remove"}},
		{"show without an id", "show needs the id", cli.ExitUsage, "", []string{"show"}},
		{"add without an address", "either --url or --file", cli.ExitUsage, "", []string{"add", "a"}},
		{"an empty list", "no endpoints: add one with forbear endpoints add", cli.ExitFound, "", []string{"list"}},
		{"add", "state    enabled", cli.ExitOK, "", []string{"add", "a", "--url", receiver.URL + "/bad", "--ordered"}},
		{"add it again", "it already exists; nothing was written", cli.ExitFound, "", []string{"add", "a", "--url", "https://example.com/"}},
		{"add by a file", "rate     5", cli.ExitOK, "", []string{"add", "b", "--file", file}},
		{"add from standard input", `"url":"https://example.com/in"`, cli.ExitOK, `{"url":"https://example.com/in"}`, []string{"add", "c", "--file", "-", "-o", "json"}},
		{"add what cannot be", "unknown field", cli.ExitUsage, `{"urll":"x"}`, []string{"add", "d", "--file", "-"}},
		{"add one that is not signed", "unsigned  true", cli.ExitOK, "", []string{"add", "e", "--url", "https://example.com/", "--unsigned"}},
		{"rotate what is not signed", "it is unsigned", cli.ExitUsage, "", []string{"rotate", "e"}},
		{"rotate", "secret       whsec_", cli.ExitOK, "", []string{"rotate", "a", "--overlap", "1h"}},
		{"rotate without an overlap", "secret   whsec_", cli.ExitOK, "", []string{"rotate", "c", "--overlap", "0s"}},
		{"rotate for too long", "outside 0s to 168h", cli.ExitUsage, "", []string{"rotate", "a", "--overlap", "169h"}},
		{"add without an id", "ep_", cli.ExitOK, "", []string{"add", "--url", "https://example.com/"}},
		{"list", "ID                             APPLICATION  STATE    TYPES  URL", cli.ExitOK, "", []string{"list"}},
		{"list as lines", `"id":"b"`, cli.ExitOK, "", []string{"list", "-o", "json"}},
		{"show", "ordered      true", cli.ExitOK, "", []string{"show", "a"}},
		{"show none", "not found", cli.ExitFound, "", []string{"show", "none"}},
		{"disable", "moves its receiver", cli.ExitOK, "", []string{"disable", "b", "--reason", "moves its receiver"}},
		{"test one that is disabled", "b accepted it: 200", cli.ExitOK, "", []string{"test", "b", "--type", "order.shipped"}},
		{"and it stays that", "disabled", cli.ExitOK, "", []string{"show", "b"}},
		{"test one that refuses", "a refused it: http_400", cli.ExitFound, "", []string{"test", "a"}},
		{"enable", "state    enabled", cli.ExitOK, "", []string{"enable", "b"}},
		{"delete by mistake", "nothing was deleted", cli.ExitFound, "no\n", []string{"delete", "b"}},
		{"delete", "b is deleted", cli.ExitOK, "yes\n", []string{"delete", "b"}},
		{"delete it again", "not found", cli.ExitFound, "", []string{"delete", "b", "--yes"}},
	} {
		got := clitest.Run(t, api.Endpoints(), c.stdin, append(c.args, "--api", address, "--actor", "ann")...)
		if got.Code != c.code || !strings.Contains(got.Out+got.Errors, c.want) {
			t.Errorf("%s: %+v, want %d and %q", c.name, got, c.code, c.want)
		}
	}
	if got := strings.Join(receiver.Bodies(), " "); got != `{"type":"order.shipped"} {"type":"forbear.test"}` {
		t.Errorf("the receiver got %s", got)
	}
	t.Setenv(cli.EnvAPIToken, "wrong-wrong-wrong")
	if got := clitest.Run(t, api.Endpoints(), "", "list", "--api", address); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "the API token is missing, wrong or expired") {
		t.Errorf("with a wrong token: %+v", got)
	}
	if got := clitest.Run(t, api.Endpoints(), "", "list", "--api", "http://ann:pw@127.0.0.1"); got.Code != cli.ExitUsage {
		t.Errorf("with a password in the address: %+v", got)
	}
}
