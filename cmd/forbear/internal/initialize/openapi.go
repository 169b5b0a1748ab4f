package initialize

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// methods are those of operations, from the safe ones to those that need a key: in
// this order the policy file has them. Others, such as TRACE, are left out.
var methods = []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"}

// openAPI is the part of an OpenAPI 3 document that init looks at. All else is
// passed over, so that extensions and later versions do no harm. Paths keep raw
// nodes, because a path holds operations beside other fields.
type openAPI struct {
	OpenAPI string `yaml:"openapi"`
	Info    struct {
		Title string `yaml:"title"`
	} `yaml:"info"`
	Servers []struct {
		URL string `yaml:"url"`
	} `yaml:"servers"`
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components struct {
		Parameters map[string]parameter `yaml:"parameters"`
	} `yaml:"components"`
}

// parameter is one of an operation, in place or as a reference to a shared one. Name
// is compared without case, as names of headers are.
type parameter struct {
	Ref  string `yaml:"$ref"`
	Name string `yaml:"name"`
	In   string `yaml:"in"`
}

// fromOpenAPI reads a dependency from its description, in YAML or JSON. Paths are
// visited in order, so that the same document makes the same file. The URL is
// taken when it is whole and names no user. Credentials in a URL would end in a file
// that is committed. Version 2 of OpenAPI is refused: its servers are described
// otherwise, and init would miss them without a word.
func fromOpenAPI(name string, data []byte) (planned, error) {
	var doc openAPI
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return planned{}, fmt.Errorf("%s: %w", name, err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		return planned{}, fmt.Errorf("%s is no OpenAPI 3 document", name)
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
		shared := doc.keyed(item["parameters"])
		for _, key := range slices.Sorted(maps.Keys(item)) {
			method := strings.ToUpper(key)
			if !slices.Contains(methods, method) {
				continue // parameters, servers, summary, x-...
			}
			has[method] = true
			if method != "POST" && method != "PATCH" {
				continue
			}
			// A path may give its parameters to all of its operations, and each
			// operation adds its own.
			var op struct {
				Parameters yaml.Node `yaml:"parameters"`
			}
			node := item[key]
			if err := node.Decode(&op); err != nil {
				return planned{}, fmt.Errorf("%s: %s %s: %w", name, method, path, err)
			}
			if shared || doc.keyed(op.Parameters) {
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
func (o *openAPI) keyed(list yaml.Node) bool {
	var params []parameter
	if list.Kind == 0 || list.Decode(&params) != nil {
		return false
	}
	for _, p := range params {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = o.Components.Parameters[name]
		}
		if strings.EqualFold(p.Name, "Idempotency-Key") && p.In == "header" {
			return true
		}
	}
	return false
}

// oneLine removes control characters: a path goes into a comment, and a line feed
// in it would end the comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
