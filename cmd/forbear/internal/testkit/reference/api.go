package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// document is as much of an OpenAPI document as the page shows.
type document struct {
	Info       struct{ Description string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]operation
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]parameter
	}
}

type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          struct {
		Content map[string]struct{ Schema *schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema *schema }
	}
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
}

// Problems of all operations, and of those that have a body.
var (
	always   = []string{"400", "401", "403", "429", "503"}
	withBody = []string{"408", "413"}
)

// API returns the page of the API of deliveries, from its OpenAPI document.
func API(openapi []byte) (string, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return "", err
	}
	p := begin("The API of deliveries", "the OpenAPI document")
	p.line("%s\n", plain(d.Info.Description))
	p.line("Programs read [the OpenAPI document](../../cmd/forbear/internal/durable/openapi.json), which `forbear serve` has at\n`/v1/openapi.json`. See also [the guide](../guides/webhooks-api.md).\n")
	p.line("Every operation can fail with %s, and one with a body with %s. The operations list their other problems.\n", ticks(always), ticks(withBody))
	for _, tag := range d.Tags {
		p.heading(2, "Operations: "+tag.Name)
		p.line("%s\n", plain(tag.Description))
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				if o, ok := d.Paths[path][method]; ok && slices.Contains(o.Tags, tag.Name) {
					p.operation(&d, strings.ToUpper(method)+" "+path, o)
				}
			}
		}
	}
	p.heading(2, "Documents")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		p.heading(3, name)
		if s.Description != "" {
			p.line("%s\n", plain(s.Description))
		}
		if len(s.Properties) == 0 {
			if s.Description == "" {
				p.line("%s\n", s.kind())
			}
			continue
		}
		var rows [][]string
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			of := s.Properties[field]
			rows = append(rows, []string{tick(field), of.kind(), plain(of.Description)})
		}
		p.table([]string{"field", "value", "meaning"}, rows)
	}
	return p.String(), nil
}

func (p *page) operation(d *document, title string, o operation) {
	p.heading(3, tick(title))
	p.line("%s\n", plain(strings.TrimSpace(o.Summary+". "+o.Description)))
	var rows [][]string
	for _, q := range o.Parameters {
		if q.Ref != "" {
			q = d.Components.Parameters[q.Ref[strings.LastIndex(q.Ref, "/")+1:]]
		}
		if q.In == "path" && q.Description == "" {
			continue // the title shows it
		}
		name := tick(q.Name)
		if q.In == "header" {
			name += " (header)"
		}
		rows = append(rows, []string{name, q.Schema.kind(), plain(q.Description)})
	}
	if len(rows) > 0 {
		p.table([]string{"parameter", "value", "meaning"}, rows)
	}
	for _, fact := range o.facts() {
		p.line("- %s", fact)
	}
	p.line("")
}

// facts are the lines about body, responses and problems of an operation.
func (o operation) facts() (all []string) {
	var bodies []string
	for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
		bodies = append(bodies, o.RequestBody.Content[kind].Schema.kind())
	}
	if bodies = slices.Compact(bodies); len(bodies) > 0 {
		all = append(all, "**Body:** "+strings.Join(bodies, ", "))
	}
	var problems []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		switch {
		case slices.Contains(always, status), len(bodies) > 0 && slices.Contains(withBody, status):
		case status >= "4":
			problems = append(problems, status)
		default:
			said := []string{}
			if r.Description != "ok" {
				said = append(said, plain(r.Description))
			}
			for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
				if k := r.Content[kind].Schema.kind(); k != "" {
					said = append(said, k)
				}
			}
			all = append(all, strings.TrimSpace("**"+status+":** "+strings.Join(said, ", ")))
		}
	}
	if len(problems) > 0 {
		all = append(all, "**Problems:** "+ticks(problems))
	}
	return all
}
