// Package endpoints is the command endpoints: the receivers of webhooks, by the delivery
// API of a running serve.
package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
)

// Command returns the command endpoints.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "endpoints",
		Summary: "list, show, add, enable, disable, test, rotate and delete endpoints",
		Usage:   "list | show ID | add [ID] --url URL | enable ID | disable ID | test ID | rotate ID | delete ID [FLAGS]",
		About: `
Endpoints calls the delivery API of a running serve, which looks up the secrets.

  list           one line for each endpoint, in the order of their ids
  show ID        its configuration and state, with secrets masked
  add [ID]       add a new one, by flags or from a JSON file; serve makes up an id
                 when none is given
  enable ID      send to it again
  disable ID     stop sending to it; its messages wait
  test ID        send it one message of a type, now, whatever its state
  rotate ID      give it a new secret, which is shown once; the old secrets sign as
                 well until --overlap has passed
  delete ID      delete it; its queued messages become dead letters

Exit code 1: the endpoint does not exist, exists already, or refused the test.`,
		Examples: `
forbear endpoints list --application acme
forbear endpoints add acme --url https://hooks.example.com/ --secret env:ACME --type 'order.*' --application acme
forbear endpoints add acme --file acme.json
forbear endpoints test acme --type order.shipped
forbear endpoints disable acme --reason "the customer moves its receiver"
`,
	}, setup)
}

// endpoints is one run of the command.
type endpoints struct {
	*api.Client

	file  string
	types api.List
	yes   bool
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	e := &endpoints{Client: api.New(r, f, "endpoints")}
	f.String("url", "", "add: its `URL`")
	f.String("application", "", "list, add: of this application, by its `id`")
	f.Var(&e.types, "type", "add: it wants messages of this `type`, such as order.*; given several times, of any of them. test: the type of the message")
	f.Var(&api.List{}, "secret", "add: signs with this secret, or what this `reference` names; given several times, with all of them")
	f.Bool("unsigned", false, "add: attempts are not signed; without it and --secret, a secret is made and shown once")
	f.Bool("ordered", false, "add: keeps the order of keys")
	f.Float64("rate", 0, "add: at most this `number` of attempts a second (default no bound)")
	f.Int("concurrency", 0, "add: at most this `number` of attempts at once, of each process (default 10)")
	f.StringVar(&e.file, "file", "", "add: the configuration in this JSON `file`, - for standard input")
	reason := f.String("reason", "", "disable: the `reason`")
	overlap := f.String("overlap", "24h", "rotate: the `time` for which the old secrets sign as well, up to 168h; 0s: not at all")
	f.BoolVar(&e.yes, "yes", false, "delete: do not ask")
	const id = "the id of an endpoint"
	return []verb.Verb{
		{Name: "list", Do: api.Listed(e.Client, "ID APPLICATION STATE TYPES URL WHY", row, "application")},
		{Name: "show", Operand: id, Do: e.Shown(api.Request{Method: http.MethodGet})},
		{Name: "add", Operand: id, Optional: true, Check: e.checkAdd, Do: func(ctx context.Context) error {
			return e.Added(ctx, e.file, "url", "application", "type:types", "secret:secrets", "unsigned", "ordered", "rate", "concurrency")
		}},
		{Name: "enable", Operand: id, Do: e.Shown(api.Request{Method: http.MethodPost, Action: "/enable"})},
		{Name: "disable", Operand: id, Do: e.Shown(api.Request{Method: http.MethodPost, Action: "/disable", Body: func() any { return map[string]any{"reason": *reason} }})},
		{Name: "test", Operand: id, Check: e.checkTest, Do: e.test},
		{Name: "rotate", Operand: id, Do: e.Shown(api.Request{Method: http.MethodPost, Action: "/secrets/rotate", Body: func() any { return map[string]any{"overlap": *overlap} }})},
		{Name: "delete", Operand: id, Do: e.delete},
	}
}

// endpoint is what a list shows of an endpoint.
type endpoint struct {
	ID, Application, State, URL, Error, Reason, Held string
	Types                                            []string
}

func row(e endpoint) []any {
	return []any{e.ID, e.Application, e.State, strings.Join(e.Types, ","), e.URL, cmp.Or(e.Error, e.Reason, e.Held)}
}

func (e *endpoints) checkAdd() error {
	if e.Given("url") == (e.file != "") {
		return errors.New("add wants either --url or --file")
	}
	return nil
}

func (e *endpoints) checkTest() error {
	if len(e.types) > 1 {
		return errors.New("test wants one --type")
	}
	return nil
}

// test sends a message and says how it went.
func (e *endpoints) test(ctx context.Context) error {
	body, err := e.Call(ctx, api.Request{Method: http.MethodPost, Action: "/test", Body: func() any {
		return map[string]any{"type": strings.Join(e.types, "")}
	}})
	if err != nil {
		return err
	}
	var result struct {
		OK        bool
		Status    int
		ErrorType string `json:"error_type"`
		Response  string
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return err
	}
	switch {
	case e.JSON(json.RawMessage(body)):
	case result.OK:
		fmt.Fprintf(e.Out, "%s took it: %d\n", cli.Printable(e.ID), result.Status)
	default:
		fmt.Fprintf(e.Out, "%s refused it: %s %s\n", cli.Printable(e.ID), cli.Printable(result.ErrorType), cli.Printable(result.Response))
	}
	if !result.OK {
		return verb.ErrNegative
	}
	return nil
}

// delete deletes an endpoint, when that is meant.
func (e *endpoints) delete(ctx context.Context) error {
	if err := e.Confirm(e.yes, "Delete the endpoint "+e.ID+", and make dead letters of its queued messages?", "deleted"); err != nil {
		return err
	}
	return e.Deleted(ctx)
}
