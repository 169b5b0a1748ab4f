package foreign

import (
	"fmt"
	"strings"
	"testing"
)

// What stands before the @ of an address is no part of a name: names are in every report.
func TestNamesHoldNoCredentials(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"e.conf", "upstream b { server 10.0.0.1; server 10.0.0.2; }\nserver { location /a { proxy_pass http://bob:hunter2@b/x?k=hunter2; proxy_next_upstream error http_404; }\n location /b { proxy_pass https://bob:hunter2@api.example.com; } }\n"},
	} {
		results := Read(Open(tt.name, []byte(tt.text), "").Parts)
		if len(results) == 0 || len(results[0].Refused) == 0 {
			t.Fatalf("%s: got %+v", tt.name, results)
		}
		for _, r := range results {
			for _, d := range r.File.Dependencies {
				if strings.Contains(fmt.Sprint(d.Name, d.Service, d.URL), "hunter2") {
					t.Errorf("%s: the name is %s, the service %s", tt.name, d.Name, d.Service)
				}
			}
			for _, f := range append(append(r.Refused, r.File.Unjudged...), r.File.Limits...) {
				if strings.Contains(f.Error()+f.Dependency, "hunter2") {
					t.Errorf("%s: %v", tt.name, f)
				}
			}
		}
	}
}
