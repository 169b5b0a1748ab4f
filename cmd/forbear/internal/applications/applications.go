// Package applications is the command applications: tenants, by the delivery API of a
// running serve.
package applications

import (
	"cmp"
	"context"
	"flag"
	"net/http"

	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/webhook"
)

// Command returns the command applications.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "applications",
		Summary: "list, show, add, suspend, resume, rotate and delete applications",
		Usage:   "list | show ID | add ID | suspend ID | resume ID | rotate ID | delete ID [FLAGS]",
		About: `
Applications calls the delivery API of a running serve. An application is a tenant,
with its own endpoints.

  list           one line for each application, in the order of their ids
  show ID        its configuration, with secrets masked
  add ID         add a new one, by flags or from a JSON file
  suspend ID     accept no messages for it, and send nothing to its endpoints
  resume ID      end the suspension
  rotate ID      give it a new secret, which is shown once; the old secrets sign as
                 well until --overlap has passed
  delete ID      delete it, when it has no endpoints

Exit code 1: the application does not exist, exists already, or has endpoints.`,
		Examples: `
forbear applications list
forbear applications add acme --name "Acme Corp" --rate 100
forbear applications suspend acme --reason "unpaid since May"
forbear applications rotate acme --overlap 48h
forbear applications delete acme
`,
	}, setup)
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	c := api.New(r, f, "applications")
	f.String("name", "", "add: its `name`, for people")
	f.Var(&api.List{}, "secret", "add: attempts to its endpoints are signed with this secret, or what this `reference` names; given several times, with all of them")
	f.Float64("rate", 0, "add: at most this `number` of messages a second (default no bound)")
	f.Int("max-endpoints", 0, "add: at most this `number` of endpoints (default 100)")
	file := f.String("file", "", "add: the configuration in this JSON `file`, - for standard input")
	reason := f.String("reason", "", "suspend: the `reason`")
	overlap := f.String("overlap", "24h", "rotate: the `time` for which the old secrets sign as well, up to 168h; 0s: not at all")
	patch := func(fields func() any) func(context.Context) error {
		return c.Shown(api.Request{Method: http.MethodPatch, Body: fields})
	}
	const id = "the id of an application"
	return []verb.Verb{
		{Name: "list", Do: api.Listed(c, "ID NAME STATE RATE MAX_ENDPOINTS WHY", row)},
		{Name: "show", Operand: id, Do: c.Shown(api.Request{Method: http.MethodGet})},
		{Name: "add", Operand: id, Do: func(ctx context.Context) error {
			return c.Added(ctx, *file, "name", "secret:secrets", "rate", "max-endpoints:max_endpoints")
		}},
		{Name: "suspend", Operand: id, Do: patch(func() any { return map[string]any{"suspended": true, "reason": *reason} })},
		{Name: "resume", Operand: id, Do: patch(func() any { return map[string]any{"suspended": false} })},
		{Name: "rotate", Operand: id, Do: c.Shown(api.Request{Method: http.MethodPost, Action: "/secrets/rotate", Body: func() any { return map[string]any{"overlap": *overlap} }})},
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

func row(a application) []any {
	state, rate := "active", any("-")
	if a.Suspended {
		state = "suspended"
	}
	if a.Rate > 0 {
		rate = a.Rate
	}
	return []any{a.ID, a.Name, state, rate, cmp.Or(a.MaxEndpoints, webhook.DefaultEndpoints), cmp.Or(a.Error, a.Reason)}
}
