package check

import (
	"strings"
	"testing"
)

// What a file was said to be, and is not, has not been judged: such a run does not pass.
func TestWrongFormat(t *testing.T) {
	route := strings.Replace(strings.Replace(mesh, "HOST", "b", 1), "NS", "n", 1)
	for _, tt := range []struct{ file, text, format, want string }{
		{"vs.yaml", route, "envoy", "vs.yaml: not recognized: the file is not in the format envoy"},
		{"vs.yaml", route, "linkerd", "in the format linkerd"},
		{"vs.yaml", route, "nginx", "in the format nginx"},
		{"e.conf", nginxEdge, "haproxy", "in the format haproxy"},
		{"vs.yaml", route, "istio", ""},
		{"e.conf", nginxEdge, "nginx", ""},
		{"quiet.yaml", "static_resources: {}\n", "envoy", ""},
		{"comment.conf", "# nothing yet\n", "nginx", "in the format nginx"},
	} {
		t.Run(tt.file+" as "+tt.format, func(t *testing.T) {
			read := ReadAll([]Input{{Name: tt.file, Data: []byte(tt.text), Format: tt.format}})
			got := ""
			if err := read.Err(); err != nil {
				got = err.Error()
			}
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
