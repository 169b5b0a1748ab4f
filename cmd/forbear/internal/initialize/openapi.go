package initialize

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// methods are those of operations, from the safe ones to those that need a key: in
// this order the policy file has them. Others, such as TRACE, are left out.
var methods = []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"}

// openAPI is the part of an OpenAPI 3 document that init looks at. All else is
// passed over, so that extensions and later versions do no harm. A path holds
// operations beside other fields.
type openAPI struct {
	OpenAPI string `yaml:"openapi"`
	Info    struct {
		Title string `yaml:"title"`
	} `yaml:"info"`
	Servers []struct {
		URL string `yaml:"url"`
	} `yaml:"servers"`
	Paths      map[string]map[string]any `yaml:"paths"`
	Components struct {
		Parameters map[string]any `yaml:"parameters"`
	} `yaml:"components"`
}

// fromOpenAPI reads a dependency from its description, in YAML or JSON. Paths are
// visited in order, so that the same document makes the same file. The URL is
// taken when it is whole and names no user: credentials would end in a file that is
// committed. Version 2 of OpenAPI is refused: its servers are described
// otherwise, and init would miss them without a word.
func fromOpenAPI(name string, data []byte) (planned, error) {
	var doc openAPI
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return planned{}, fmt.Errorf("%s: %w", name, err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		return planned{}, fmt.Errorf("%s is not an OpenAPI 3 document", name)
	}
	d := planned{name: label(doc.Info.Title), from: name}
	// The first server is the one that clients are to use. A relative URL is that
	// of the document's own host, which a file does not have.
	if len(doc.Servers) > 0 {
		if u, err := url.Parse(doc.Servers[0].URL); err == nil && u.Host != "" && u.User == nil {
			d.url = doc.Servers[0].URL
		}
	}
	has := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		shared := doc.keyed(item["parameters"]) // a path may give its parameters to all of its operations
		for _, key := range slices.Sorted(maps.Keys(item)) {
			method := strings.ToUpper(key)
			if !slices.Contains(methods, method) {
				continue // parameters, servers, summary, x-...
			}
			has[method] = true
			if method != "POST" && method != "PATCH" {
				continue
			}
			op, _ := item[key].(map[string]any)
			if shared || doc.keyed(op["parameters"]) {
				d.keyed++
			} else {
				d.unkeyed = append(d.unkeyed, method+" "+oneLine(path))
			}
		}
	}
	d.methods = slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return !has[m] })
	return d, nil
}

// keyed reports whether a list of parameters has the Idempotency-Key header. A
// list that cannot be read has none: the operation is then not retried.
func (o *openAPI) keyed(list any) bool {
	parameters, _ := list.([]any)
	return slices.ContainsFunc(parameters, func(v any) bool {
		p, _ := v.(map[string]any)
		if ref, ok := p["$ref"].(string); ok {
			p, _ = o.Components.Parameters[strings.TrimPrefix(ref, "#/components/parameters/")].(map[string]any)
		}
		name, _ := p["name"].(string)
		return strings.EqualFold(name, "Idempotency-Key") && p["in"] == "header"
	})
}

// oneLine removes control characters: a path goes into a comment, and a line feed
// in it would end the comment.
func oneLine(s string) string { return control.ReplaceAllString(s, "") }

var control = regexp.MustCompile(`[[:cntrl:]]`)
