// Package endpoints is the command endpoints: the receivers of webhooks, by the delivery
// API of a running serve.
package endpoints

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/forbear-go/forbear/client"
	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Command returns the command endpoints.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "endpoints",
		Summary: "list, show, add, enable, disable, test, rotate and delete endpoints",
		Usage:   "list | show ID | add [ID] --url URL | enable ID | disable ID | test ID | rotate ID | delete ID [FLAGS]",
		About: `
Endpoints calls the delivery API of a running serve, where secrets are looked up.

  list           one line for each endpoint, in the order of their ids
  show ID        its configuration and state; secrets are masked
  add [ID]       adds one that is not there, by flags or from a JSON file; without an
                 id one is made
  enable ID      sends to it again
  disable ID     sends nothing to it; its messages wait
  test ID        sends it one message of a type, now, whatever its state
  rotate ID      gives it a new secret, shown once; the former sign beside it until
                 --overlap is over
  delete ID      deletes it; what waits for it becomes dead letters

Exit code 1 means that there is no such endpoint, that it is there already, or that it
refused the test.`,
		Examples: `
forbear endpoints list --application acme
forbear endpoints add acme --url https://hooks.example.com/ --secret env:ACME --type 'order.*' --application acme
forbear endpoints add acme --file acme.json
forbear endpoints test acme --type order.shipped
forbear endpoints disable acme --reason "the customer moves its receiver"
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := &run{Caller: api.Caller{Std: std}}
		r.Register(f, "endpoints")
		f.StringVar(&r.endpoint.URL, "url", "", "add: where to send `to`")
		f.StringVar(&r.endpoint.Application, "application", "", "list, add: of this application, by its `id`")
		f.Func("type", "add: it wants messages of this `type`, such as order.*; given several times, of any of them. test: the type of the message", api.List(&r.endpoint.Types))
		f.Func("secret", "add: signs with this secret, or what this `reference` names; given several times, with all of them", api.List(&r.endpoint.Secrets))
		f.BoolVar(&r.endpoint.Unsigned, "unsigned", false, "add: attempts are not signed; without it and --secret, a secret is made and shown once")
		f.BoolVar(&r.endpoint.Ordered, "ordered", false, "add: keeps the order of keys")
		f.Float64Var(&r.endpoint.Rate, "rate", 0, "add: at most this `many` attempts a second (default no bound)")
		f.IntVar(&r.endpoint.Concurrency, "concurrency", 0, "add: at most this `many` attempts at once, of each process (default 10)")
		f.StringVar(&r.file, "file", "", "add: the configuration in this JSON `file`, - for standard input")
		f.StringVar(&r.reason, "reason", "", "disable: `why`")
		f.StringVar(&r.overlap, "overlap", "24h", "rotate: how `long` the former secrets sign too, up to 168h; 0s: no more")
		f.BoolVar(&r.yes, "yes", false, "delete: do not ask")
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		if err := r.check(words); err != nil {
			return std.Fail("endpoints: %v (see forbear endpoints --help)", err)
		}
		var err error
		if r.client, err = r.Client(); err != nil {
			return std.Fail("endpoints: %v", err)
		}
		return r.run(ctx, words[0])
	}
	return c
}

// run is one run of the command.
type run struct {
	api.Caller
	client *client.ClientWithResponses

	id, file, reason, overlap string
	endpoint                  client.Endpoint
	yes                       bool
}

// check says what is wrong with the command line before the API is called.
func (r *run) check(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("list, show, add, enable, disable, test, rotate or delete?")
	case len(words) > 2 || words[0] == "list" && len(words) > 1:
		return fmt.Errorf("%s takes no %q", words[0], words[len(words)-1])
	case words[0] != "list" && words[0] != "add" && len(words) == 1:
		return fmt.Errorf("%s wants the id of an endpoint", words[0])
	case words[0] == "add" && (r.endpoint.URL == "") == (r.file == ""):
		return errors.New("add wants either --url or --file")
	case words[0] == "test" && len(r.endpoint.Types) > 1:
		return errors.New("test wants one --type")
	}
	if len(words) == 2 {
		r.id = words[1]
	}
	return nil
}

func (r *run) run(ctx context.Context, verb string) int {
	switch verb {
	case "list":
		return r.list(ctx)
	case "add":
		return r.add(ctx)
	case "test":
		return r.test(ctx)
	case "delete":
		return r.delete(ctx)
	case "enable":
		resp, err := r.client.EnableEndpointWithResponse(ctx, r.id)
		return r.Shown(resp, err)
	case "disable":
		resp, err := r.client.DisableEndpointWithResponse(ctx, r.id, client.Disable{Reason: r.reason})
		return r.Shown(resp, err)
	case "rotate":
		resp, err := r.client.RotateEndpointSecretsWithResponse(ctx, r.id, client.Rotate{Overlap: r.overlap})
		return r.Shown(resp, err)
	default:
		resp, err := r.client.GetEndpointWithResponse(ctx, r.id)
		return r.Shown(resp, err)
	}
}

// list writes a line for each endpoint, page by page.
func (r *run) list(ctx context.Context) int {
	params, found := client.ListEndpointsParams{}, false
	if r.endpoint.Application != "" {
		params.Application = &r.endpoint.Application
	}
	w := tabwriter.NewWriter(r.Std.Out, 0, 0, 2, ' ', 0)
	for {
		resp, err := r.client.ListEndpointsWithResponse(ctx, &params)
		if _, err := api.Body(resp, err); err != nil {
			return r.Exit(err)
		}
		for _, e := range resp.JSON200.Endpoints {
			if r.Format == "json" {
				_ = r.Line(e)
			} else {
				if !found {
					fmt.Fprintln(w, "ID\tAPPLICATION\tSTATE\tTYPES\tURL\tWHY")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cli.Printable(e.ID), cli.Printable(e.Application), e.State, cli.Printable(strings.Join(e.Types, ",")), cli.Printable(e.URL), cli.Printable(cmp.Or(e.Error, e.Reason, e.Held)))
			}
			found = true
		}
		if err := w.Flush(); err != nil {
			return r.Exit(err)
		}
		if resp.JSON200.Next == "" {
			break
		}
		params.After = &resp.JSON200.Next
	}
	if !found {
		fmt.Fprintln(r.Std.Err, "endpoints: there are none")
		return cli.ExitFound
	}
	return cli.ExitOK
}

// add adds an endpoint that is not there.
func (r *run) add(ctx context.Context) int {
	body, err := r.body()
	if err != nil {
		return r.Exit(err)
	}
	if r.id == "" {
		resp, err := r.client.PostEndpointWithBodyWithResponse(ctx, "application/json", body)
		return r.Shown(resp, err)
	}
	none := client.PutEndpointParamsIfNoneMatchAsterisk
	resp, err := r.client.PutEndpointWithBodyWithResponse(ctx, r.id, &client.PutEndpointParams{IfNoneMatch: &none}, "application/json", body)
	return r.Shown(resp, err)
}

// body returns the configuration that is to be added.
func (r *run) body() (io.Reader, error) {
	if r.file != "" {
		return r.File(r.file)
	}
	text, err := json.Marshal(r.endpoint)
	return bytes.NewReader(text), err
}

// test sends a message and says how it went.
func (r *run) test(ctx context.Context) int {
	resp, err := r.client.TestEndpointWithResponse(ctx, r.id, client.TestMessage{Type: strings.Join(r.endpoint.Types, "")})
	if _, err := api.Body(resp, err); err != nil {
		return r.Exit(err)
	}
	res := resp.JSON200
	switch {
	case r.Format == "json":
		_ = r.Line(res)
	case res.Ok:
		fmt.Fprintf(r.Std.Out, "%s took it: %d\n", cli.Printable(r.id), res.Status)
	default:
		fmt.Fprintf(r.Std.Out, "%s refused it: %s %s\n", cli.Printable(r.id), cli.Printable(res.ErrorType), cli.Printable(res.Response))
	}
	if !res.Ok {
		return cli.ExitFound
	}
	return cli.ExitOK
}

// delete deletes an endpoint, when that is meant.
func (r *run) delete(ctx context.Context) int {
	if !r.yes && !cli.Confirm(r.Std, "Delete the endpoint "+r.id+", and make dead letters of what waits for it?") {
		fmt.Fprintln(r.Std.Err, "endpoints: nothing was deleted")
		return cli.ExitFound
	}
	resp, err := r.client.DeleteEndpointWithResponse(ctx, r.id, nil)
	if _, err = api.Body(resp, err); err == nil {
		fmt.Fprintf(r.Std.Out, "%s is deleted\n", cli.Printable(r.id))
	}
	return r.Exit(err)
}
