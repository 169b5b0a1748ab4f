package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
)

// A list goes on behind each page, in the name of the actor, and keeps to what the flags
// choose. What senders wrote is shown as they wrote it, without control characters.
func TestListed(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("X-Forbear-Actor")+" "+r.URL.String())
		if r.URL.Query().Get("after") == "" {
			fmt.Fprint(w, `{"things":[{"id":"a","of":"<\u001bx>"}],"next":"a"}`)
		} else {
			fmt.Fprint(w, `{"things":[{"id":"b"}],"next":""}`)
		}
	}))
	defer srv.Close()
	type thing struct{ ID, Of string }
	c := verb.Command(cli.Command{Name: "things", Usage: "list"}, func(r *verb.Run, f *flag.FlagSet) []verb.Verb {
		c := api.New(r, f, "things")
		f.String("of", "", "")
		return []verb.Verb{{Name: "list", Do: api.Listed(c, "ID OF_WHAT", func(t thing) []any { return []any{t.ID, t.Of} }, "of")}}
	})
	for format, want := range map[string]string{
		"text": "ID  OF WHAT\na   <x>\nb  \n",
		"json": "{\"id\":\"a\",\"of\":\"<\\u001bx>\"}\n{\"id\":\"b\"}\n",
	} {
		asked = nil
		got := clitest.Run(t, c, "", "list", "--of", "x y", "--actor", "ann", "--api", srv.URL+"/", "-o", format)
		if got.Code != cli.ExitOK || got.Out != want {
			t.Errorf("%s: got %+v, want %q", format, got, want)
		}
		if got := strings.Join(asked, ", "); got != "ann /v1/things?of=x+y, ann /v1/things?after=a&of=x+y" {
			t.Errorf("asked %s", got)
		}
	}
}
