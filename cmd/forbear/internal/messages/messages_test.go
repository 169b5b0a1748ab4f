//forbear:plain nothing runs at once
package messages

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

func TestMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forbear.db")
	db, err := database.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := db.Webhooks()
	if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "acme", URL: "https://example.com/"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m := webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"acme"}, Type: "t", Body: []byte("{}")}
		if _, err := s.Accept(t.Context(), []webhook.Message{m}, nil); err != nil {
			t.Fatal(err)
		}
	}
	step := store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "acme", Max: 1}}}
	claimed, err := s.WriteBackAndClaim(t.Context(), step)
	if err != nil || len(claimed.Claimed) != 1 {
		t.Fatal(claimed, err)
	}
	d := claimed.Claimed[0]
	if _, err := s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{{
		ID: d.ID, Fence: d.Fence, Endpoint: "acme", Kind: store.Delivered,
		Attempt: &deadletter.Attempt{Number: 1, Claim: 1, At: time.Now(), Status: 200, Response: "a stranger's text"},
	}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"no verb", "want list, show, cancel, send-again or erase", cli.ExitUsage, nil},
		{"a verb that is none", "unknown verb", cli.ExitUsage, []string{"resend"}},
		{"a state that is none", `invalid value "gone" for --state`, cli.ExitUsage, []string{"list", "--state", "gone"}},
		{"show without an id", "needs the id", cli.ExitUsage, []string{"show"}},
		{"all by mistake", "needs an id, a filter flag or --all", cli.ExitUsage, []string{"cancel"}},
		{"what cannot be canceled", "not for messages in state dead", cli.ExitUsage, []string{"cancel", "--state", "dead"}},
		{"a list", "m2  acme      waiting    t          0", cli.ExitOK, []string{"list", "--endpoint", "acme"}},
		{"a page", "there may be more: add --after 3", cli.ExitOK, []string{"list", "--limit", "1"}},
		{"the next page", `"id":"m1"`, cli.ExitOK, []string{"list", "--limit", "1", "--after", "3", "-o", "json"}},
		{"an empty list", "no such messages", cli.ExitFound, []string{"list", "--type", "none"}},
		{"one message", "m0 at acme: delivered", cli.ExitOK, []string{"show", "m0"}},
		{"a response", "a stranger's text", cli.ExitOK, []string{"show", "--reveal", "m0"}},
		{"what was sent", "payload of 2 bytes: {}", cli.ExitOK, []string{"show", "--reveal", "m0"}},
		{"what was sent, masked", "m0 to acme\n  type: t\n", cli.ExitOK, []string{"show", "m0"}},
		{"none of that id", "no such messages", cli.ExitFound, []string{"show", "none"}},
		{"only counted", "2 would be canceled", cli.ExitOK, []string{"cancel", "--all", "--dry-run"}},
		{"one is canceled", "1 canceled", cli.ExitOK, []string{"cancel", "m1"}},
		{"it was", "0 canceled\n1 not changed: it has ended", cli.ExitFound, []string{"cancel", "m1"}},
		{"those by a filter", "1 canceled", cli.ExitOK, []string{"cancel", "--endpoint", "acme"}},
		{"all are sent again", "3 sent again", cli.ExitOK, []string{"send-again", "--all"}},
		{"erased by mistake", "Type yes: forbear: messages: nothing was erased", cli.ExitFound, []string{"erase", "m0"}},
		{"erased", "m0 is erased", cli.ExitOK, []string{"erase", "m0", "--yes"}},
		{"what is erased", "m0 to acme\n  erased\nm0 at acme: canceled", cli.ExitOK, []string{"show", "m0"}},
		{"erased by no filter", "erase needs an id, a filter flag or --all", cli.ExitUsage, []string{"erase"}},
		{"erased by a filter, only counted", "2 would be erased", cli.ExitOK, []string{"erase", "--type", "t", "--dry-run"}},
		{"erased by a filter by mistake", "nothing was erased", cli.ExitFound, []string{"erase", "--type", "t"}},
		{"erased by a filter that does not choose it", "0 erased", cli.ExitFound, []string{"erase", "m1", "--type", "u", "--yes"}},
		{"erased by another's filter", "0 erased", cli.ExitFound, []string{"erase", "--application", "none", "--yes"}},
		{"erased by a filter", "2 erased", cli.ExitOK, []string{"erase", "--endpoint", "acme", "--yes"}},
		{"what was erased by it", "m1 to acme\n  erased\n", cli.ExitOK, []string{"show", "m1"}},
		{"erased by it again", "3 not changed: it is erased already", cli.ExitFound, []string{"erase", "--all", "--yes"}},
		{"erased, of none", "no such messages", cli.ExitFound, []string{"erase", "none", "--yes"}},
	} {
		got := clitest.Run(t, Command(), "", append(c.args, "--database", path, "--actor", "ann")...)
		if got.Code != c.code || !strings.Contains(got.Out+got.Errors, c.want) || c.name != "a response" && c.name != "what was sent" && strings.Contains(got.Out, "stranger") {
			t.Errorf("%s: %+v, want %d and %q", c.name, got, c.code, c.want)
		}
	}
	trail, err := db.DeadLetters().AuditTrail(t.Context(), 10)
	if err != nil || len(trail) != 8 || trail[0].Action != "message-erase" || trail[3].Who != "ann" || trail[3].Detail != "endpoint acme, and 2 more" || trail[6].Action != "reveal" {
		t.Errorf("the audit has %+v, %v", trail, err)
	}
}
