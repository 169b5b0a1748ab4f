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

// API returns the page of the API of deliveries, from its OpenAPI document.
func API(openapi []byte) (string, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return "", err
	}
	p := begin("The API of deliveries", "the OpenAPI document")
	p.line("%s\n", plain(d.Info.Description))
	p.line("[The OpenAPI document](../../cmd/forbear/internal/durable/openapi.json) says the same to programs; `forbear serve` has it at\n`/v1/openapi.json`. [The guide](../guides/webhooks-api.md) shows the API at work.\n")
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
	p.line("%s. %s\n", plain(o.Summary), plain(o.Description))
	var rows [][]string
	for _, q := range o.Parameters {
		if q.Ref != "" {
			q = d.Components.Parameters[q.Ref[strings.LastIndex(q.Ref, "/")+1:]]
		}
		rows = append(rows, []string{tick(q.Name), q.In, q.Schema.kind(), plain(q.Description)})
	}
	if len(rows) > 0 {
		p.table([]string{"parameter", "in", "value", "meaning"}, rows)
	}
	var facts []string
	for _, c := range o.RequestBody.Content {
		facts = append(facts, "**Body:** "+c.Schema.kind())
	}
	var failed []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if status >= "4" {
			failed = append(failed, tick(status))
			continue
		}
		var said strings.Builder
		said.WriteString("**" + status + ":** " + plain(r.Description))
		for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
			if k := r.Content[kind].Schema.kind(); k != "" {
				said.WriteString(", " + k)
			}
		}
		facts = append(facts, said.String())
	}
	if len(failed) > 0 {
		facts = append(facts, "**Problems:** "+strings.Join(failed, ", "))
	}
	for _, fact := range facts {
		p.line("- %s", fact)
	}
	p.line("")
}
