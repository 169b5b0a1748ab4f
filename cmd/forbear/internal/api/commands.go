package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/webhook"
)

// Endpoints returns the command endpoints: the receivers of webhooks.
func Endpoints() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "endpoints",
		Summary: "list, show, add, enable, disable, test, rotate and delete endpoints",
		Usage:   "list | show ID | add [ID] --url URL | enable ID | disable ID | test ID | rotate ID | delete ID [FLAGS]",
		About: `
Endpoints calls the delivery API of a running serve.

  list           list endpoints, ordered by id
  show ID        show its configuration and state, with secrets masked
  add [ID]       add one, by flags or from a JSON file; without ID, serve makes one
  enable ID      send to it again
  disable ID     stop sending to it; its messages stay queued
  test ID        send it one message of a type immediately, in any state
  rotate ID      give it a new secret, which is shown once; the old secrets also sign
                 until --overlap has passed
  delete ID      delete it; its queued messages become dead letters

Exit code 1: the endpoint does not exist, already exists, or refused the test.`,
		Examples: `
forbear endpoints list --application acme
forbear endpoints add acme --url https://hooks.example.com/ --secret env:ACME --type 'order.*' --application acme
forbear endpoints add acme --file acme.json
forbear endpoints test acme --type order.shipped
forbear endpoints disable acme --reason "the customer moves its receiver"
`,
	}, setupEndpoints)
}

// endpoints is one run of the command.
type endpoints struct {
	*Client

	file  string
	types List
	yes   bool
}

func setupEndpoints(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	e := &endpoints{Client: New(r, f, "endpoints")}
	f.String("url", "", "add: its `URL`")
	f.String("application", "", "list, add: of the application with this `id`")
	f.Var(&e.types, "type", "add: wants messages of this `type`, such as order.*; may be repeated. test: the type of the message")
	f.Var(&List{}, "secret", "add: signs with this secret, or `reference` (env:NAME, file:NAME); may be repeated")
	f.Bool("unsigned", false, "add: does not sign; without it and --secret, a secret is made and shown once")
	f.Bool("ordered", false, "add: keeps the order of messages with the same key")
	f.Float64("rate", 0, "add: at most this `number` of attempts a second (default no bound)")
	f.Int("concurrency", 0, "add: at most this `number` of concurrent attempts of a process (default 10)")
	f.StringVar(&e.file, "file", "", "add: the configuration as a JSON `file`, - for standard input")
	reason := f.String("reason", "", "disable: the `reason`")
	f.BoolVar(&e.yes, "yes", false, "delete: do not ask")
	const id = "the id of an endpoint"
	return []verb.Verb{
		{Name: "list", Do: Listed(e.Client, "ID APPLICATION STATE TYPES URL WHY", endpoint.row, "application")},
		{Name: "show", Operand: id, Do: e.Shown(Request{Method: http.MethodGet})},
		{Name: "add", Operand: id, Optional: true, Check: e.checkAdd, Do: func(ctx context.Context) error {
			return e.Added(ctx, e.file, "url", "application", "type:types", "secret:secrets", "unsigned", "ordered", "rate", "concurrency")
		}},
		{Name: "enable", Operand: id, Do: e.Shown(Request{Method: http.MethodPost, Action: "/enable"})},
		{Name: "disable", Operand: id, Do: e.Shown(Request{Method: http.MethodPost, Action: "/disable", Body: func() any { return map[string]any{"reason": *reason} }})},
		{Name: "test", Operand: id, Check: e.checkTest, Do: e.test},
		e.rotate(f, id),
		{Name: "delete", Operand: id, Do: e.delete},
	}
}

// endpoint is what a list shows of an endpoint.
type endpoint struct {
	ID, Application, State, URL, Error, Reason, Held string
	Types                                            []string
}

func (e endpoint) row() []any {
	return []any{e.ID, e.Application, e.State, strings.Join(e.Types, ","), e.URL, cmp.Or(e.Error, e.Reason, e.Held)}
}

func (e *endpoints) checkAdd() error {
	if e.Given("url") == (e.file != "") {
		return errors.New("add needs either --url or --file")
	}
	return nil
}

func (e *endpoints) checkTest() error {
	if len(e.types) > 1 {
		return errors.New("test needs one --type")
	}
	return nil
}

// test sends a message and says how it went.
func (e *endpoints) test(ctx context.Context) error {
	body, err := e.Call(ctx, Request{Method: http.MethodPost, Action: "/test", Body: func() any {
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
		fmt.Fprintf(e.Out, "%s accepted it: %d\n", cli.Printable(e.ID), result.Status)
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
	if err := e.Confirm(e.yes, "Delete the endpoint "+e.ID+" and dead-letter its queued messages?", "deleted"); err != nil {
		return err
	}
	return e.Deleted(ctx)
}

// Applications returns the command applications: tenants, each with its own endpoints.
func Applications() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "applications",
		Summary: "list, show, add, suspend, resume, rotate and delete applications",
		Usage:   "list | show ID | add ID | suspend ID | resume ID | rotate ID | delete ID [FLAGS]",
		About: `
Applications calls the delivery API of a running serve. An application is a tenant
with its own endpoints.

  list           list applications, ordered by id
  show ID        show its configuration, with secrets masked
  add ID         add one, by flags or from a JSON file
  suspend ID     accept no messages for it, and send nothing to its endpoints
  resume ID      end the suspension
  rotate ID      give it a new secret, which is shown once; the old secrets also sign
                 until --overlap has passed
  delete ID      delete it, when it has no endpoints

Exit code 1: the application does not exist, already exists, or has endpoints.`,
		Examples: `
forbear applications list
forbear applications add acme --name "Acme Corp" --rate 100
forbear applications suspend acme --reason "unpaid since May"
forbear applications rotate acme --overlap 48h
forbear applications delete acme
`,
	}, setupApplications)
}

func setupApplications(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	c := New(r, f, "applications")
	f.String("name", "", "add: its `name`, for people")
	f.Var(&List{}, "secret", "add: its endpoints sign with this secret, or `reference` (env:NAME, file:NAME); may be repeated")
	f.Float64("rate", 0, "add: at most this `number` of messages a second (default no bound)")
	f.Int("max-endpoints", 0, "add: at most this `number` of endpoints (default 100)")
	file := f.String("file", "", "add: the configuration as a JSON `file`, - for standard input")
	reason := f.String("reason", "", "suspend: the `reason`")
	patch := func(fields func() any) func(context.Context) error {
		return c.Shown(Request{Method: http.MethodPatch, Body: fields})
	}
	const id = "the id of an application"
	return []verb.Verb{
		{Name: "list", Do: Listed(c, "ID NAME STATE RATE MAX_ENDPOINTS WHY", application.row)},
		{Name: "show", Operand: id, Do: c.Shown(Request{Method: http.MethodGet})},
		{Name: "add", Operand: id, Do: func(ctx context.Context) error {
			return c.Added(ctx, *file, "name", "secret:secrets", "rate", "max-endpoints:max_endpoints")
		}},
		{Name: "suspend", Operand: id, Do: patch(func() any { return map[string]any{"suspended": true, "reason": *reason} })},
		{Name: "resume", Operand: id, Do: patch(func() any { return map[string]any{"suspended": false} })},
		c.rotate(f, id),
		{Name: "delete", Operand: id, Do: c.Deleted},
	}
}

// application is what a list shows of an application.
type application struct {
	ID, Name, Error, Reason string
	Suspended               bool
	Rate                    float64
	MaxEndpoints            int `json:"max_endpoints"`
}

func (a application) row() []any {
	state, rate := "active", any("-")
	if a.Suspended {
		state = "suspended"
	}
	if a.Rate > 0 {
		rate = a.Rate
	}
	return []any{a.ID, a.Name, state, rate, cmp.Or(a.MaxEndpoints, webhook.DefaultEndpoints), cmp.Or(a.Error, a.Reason)}
}

// rotate returns the verb that gives what the operand names a new secret.
func (c *Client) rotate(f *flag.FlagSet, operand string) verb.Verb {
	overlap := f.String("overlap", "24h", "rotate: how long the old secrets also sign, a `time` up to 168h")
	body := func() any { return map[string]any{"overlap": *overlap} }
	return verb.Verb{Name: "rotate", Operand: operand, Do: c.Shown(Request{Method: http.MethodPost, Action: "/secrets/rotate", Body: body})}
}
