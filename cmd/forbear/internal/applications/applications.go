// Package applications is the command applications: tenants, by the delivery API of a
// running serve.
package applications

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/forbear-go/forbear/client"
	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/webhook"
)

// Command returns the command applications.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "applications",
		Summary: "list, show, add, suspend, resume, rotate and delete applications",
		Usage:   "list | show ID | add ID | suspend ID | resume ID | rotate ID | delete ID [FLAGS]",
		About: `
Applications calls the delivery API of a running serve. An application is a tenant,
with endpoints of its own.

  list           one line for each application, in the order of their ids
  show ID        its configuration; secrets are masked
  add ID         adds one that is not there, by flags or from a JSON file
  suspend ID     takes no messages for it, and sends nothing to its endpoints
  resume ID      ends that
  rotate ID      gives it a new secret, shown once; the former sign beside it until
                 --overlap is over
  delete ID      deletes it, when it has no endpoints

Exit code 1 means that there is no such application, that it is there already, or that
it has endpoints.`,
		Examples: `
forbear applications list
forbear applications add acme --name "Acme Corp" --rate 100
forbear applications suspend acme --reason "unpaid since May"
forbear applications rotate acme --overlap 48h
forbear applications delete acme
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := &run{Caller: api.Caller{Std: std}}
		r.Register(f, "applications")
		f.StringVar(&r.application.Name, "name", "", "add: its `name`, for people")
		f.Func("secret", "add: attempts to its endpoints are signed with this secret, or what this `reference` names; given several times, with all of them", api.List(&r.application.Secrets))
		f.Float64Var(&r.application.Rate, "rate", 0, "add: at most this `many` messages a second (default no bound)")
		f.IntVar(&r.application.MaxEndpoints, "max-endpoints", 0, "add: at most this `many` endpoints (default 100)")
		f.StringVar(&r.file, "file", "", "add: the configuration in this JSON `file`, - for standard input")
		f.StringVar(&r.application.Reason, "reason", "", "suspend: `why`")
		f.StringVar(&r.overlap, "overlap", "24h", "rotate: how `long` the former secrets sign too, up to 168h; 0s: no more")
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		err := r.check(words)
		if err != nil {
			return std.Fail("applications: %v (see forbear applications --help)", err)
		}
		if r.client, err = r.Client(); err != nil {
			return std.Fail("applications: %v", err)
		}
		return r.run(ctx, words[0])
	}
	return c
}

// run is one run of the command.
type run struct {
	api.Caller
	client *client.ClientWithResponses

	id, file, overlap string
	application       client.Application
}

// check says what is wrong with the command line before the API is called.
func (r *run) check(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("list, show, add, suspend, resume, rotate or delete?")
	case len(words) > 2 || words[0] == "list" && len(words) > 1:
		return fmt.Errorf("%s takes no %q", words[0], words[len(words)-1])
	case words[0] != "list" && len(words) == 1:
		return fmt.Errorf("%s wants the id of an application", words[0])
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
	case "suspend":
		return r.patch(ctx, map[string]any{"suspended": true, "reason": r.application.Reason})
	case "resume":
		return r.patch(ctx, map[string]any{"suspended": false})
	case "rotate":
		resp, err := r.client.RotateApplicationSecretsWithResponse(ctx, r.id, client.Rotate{Overlap: r.overlap})
		return r.Shown(resp, err)
	case "delete":
		resp, err := r.client.DeleteApplicationWithResponse(ctx, r.id, nil)
		if _, err = api.Body(resp, err); err == nil {
			fmt.Fprintf(r.Std.Out, "%s is deleted\n", cli.Printable(r.id))
		}
		return r.Exit(err)
	default:
		resp, err := r.client.GetApplicationWithResponse(ctx, r.id)
		return r.Shown(resp, err)
	}
}

// list writes a line for each application, page by page.
func (r *run) list(ctx context.Context) int {
	params, found := client.ListApplicationsParams{}, false
	w := tabwriter.NewWriter(r.Std.Out, 0, 0, 2, ' ', 0)
	for {
		resp, err := r.client.ListApplicationsWithResponse(ctx, &params)
		if _, err := api.Body(resp, err); err != nil {
			return r.Exit(err)
		}
		for _, a := range resp.JSON200.Applications {
			if r.Format == "json" {
				_ = r.Line(a)
			} else {
				if !found {
					fmt.Fprintln(w, "ID\tNAME\tSTATE\tRATE\tMAX ENDPOINTS\tWHY")
				}
				state := "active"
				if a.Suspended {
					state = "suspended"
				}
				rate := "-"
				if a.Rate > 0 {
					rate = strconv.FormatFloat(a.Rate, 'g', -1, 64)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", cli.Printable(a.ID), cli.Printable(a.Name), state, rate, cmp.Or(a.MaxEndpoints, webhook.DefaultEndpoints), cli.Printable(cmp.Or(a.Error, a.Reason)))
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
		fmt.Fprintln(r.Std.Err, "applications: there are none")
		return cli.ExitFound
	}
	return cli.ExitOK
}

// add adds an application that is not there.
func (r *run) add(ctx context.Context) int {
	r.application.Reason = ""
	text, err := json.Marshal(r.application)
	var body io.Reader = bytes.NewReader(text)
	if r.file != "" {
		body, err = r.File(r.file)
	}
	if err != nil {
		return r.Exit(err)
	}
	none := client.PutApplicationParamsIfNoneMatchAsterisk
	resp, err := r.client.PutApplicationWithBodyWithResponse(ctx, r.id, &client.PutApplicationParams{IfNoneMatch: &none}, "application/json", body)
	return r.Shown(resp, err)
}

// patch changes fields.
func (r *run) patch(ctx context.Context, fields map[string]any) int {
	text, err := json.Marshal(fields)
	if err != nil {
		return r.Exit(err)
	}
	resp, err := r.client.PatchApplicationWithBodyWithResponse(ctx, r.id, nil, "application/merge-patch+json", bytes.NewReader(text))
	return r.Shown(resp, err)
}
