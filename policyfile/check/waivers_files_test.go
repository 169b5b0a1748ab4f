package check

import (
	"slices"
	"strings"
	"testing"
)

const meshWaived = `service: platform
waivers:
  - id: W-2
    rule: RULE
    files: ["mesh/**/*.conf"]
    reason: until the gateway is there
    owner: bob
    ticket: ARCH-119
    created: 2026-11-01
    expires: 2027-04-01
`

// seven retries seven times, within a time of its own.
const seven = "upstream a { server 10.0.0.1; server 10.0.0.2; server 10.0.0.3; server 10.0.0.4; server 10.0.0.5; server 10.0.0.6; server 10.0.0.7; keepalive 0; }\nserver { proxy_next_upstream error http_503; proxy_next_upstream_timeout 10s; proxy_read_timeout 1s; location / { proxy_pass http://a; } }\n"

func TestFileWaivers(t *testing.T) {
	k := newKeyring(t, map[string]string{"alice": Namespace, "iris": Namespace + "," + NamespaceIAB})
	count := strings.Replace(meshWaived, "RULE", "R-2", 1)
	six := count + "    lifts: [max_retries 6]\n"
	budget := strings.Replace(meshWaived, "RULE", "R-7", 1)
	one := strings.Replace(budget, "    reason", "    dependency: other\n    reason", 1)
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"none", "mesh/a/edge.conf", "service: platform\n", []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2"}},
		{"a rule that nginx cannot hold", "mesh/a/edge.conf", k.signed(budget, budget, "alice", "alice", "", Namespace), []string{"FC002 R-1", "FC002 R-5", "FC201 R-2"}},
		{"of another dependency", "mesh/a/edge.conf", k.signed(one, one, "alice", "alice", "", Namespace), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2", "FC903 "}},
		{"of other files", "edge.conf", k.signed(budget, budget, "alice", "alice", "", Namespace), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2"}},
		{"the value is named", "mesh/a/edge.conf", k.signed(six, six, "iris", "iris", "iab", NamespaceIAB), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7"}},
		{"no value", "mesh/a/edge.conf", k.signed(count, count, "iris", "iris", "iab", NamespaceIAB), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2", "FC905 "}},
		{"a value that was not signed", "mesh/a/edge.conf", k.signed(six, count, "iris", "iris", "iab", NamespaceIAB), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2", "FC907 "}},
		{"without the board", "mesh/a/edge.conf", k.signed(six, six, "alice", "alice", "", Namespace), []string{"FC002 R-1", "FC002 R-5", "FC002 R-7", "FC201 R-2", "FC909 R-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := ReadAll([]Input{{Name: "waivers.yaml", Data: []byte(tt.text)}, {Name: tt.file, Data: []byte(seven)}})
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range Run(read.Sources, Options{Now: today, AllowedSigners: k.path("allowed")}).Findings {
				if f.Suppressed == "" {
					found = append(found, f.ID+" "+f.Standard)
				}
			}
			slices.Sort(found)
			if !slices.Equal(found, tt.want) {
				t.Errorf("got %v, want %v", found, tt.want)
			}
		})
	}
}

// Settings change how grave findings are, but not what they protect.
func TestSettings(t *testing.T) {
	s, err := ParseSettings("s.yaml", []byte("severity: {FC201: warning, FC002: off}\npaths:\n- files: [\"mesh/**\"]\n  severity: {FC201: note}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"edge.conf": "FC201 warning", "mesh/edge.conf": "FC201 note"} {
		var found []string
		for _, f := range Run([]Source{parse(t, file, seven)}, Options{Now: today, Settings: s}).Findings {
			found = append(found, f.ID+" "+f.Severity.String())
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
	_, err = ParseSettings("s.yaml", []byte("severty: {}\nseverity: {FC601: note, FC999: error, FC201: grave, FC911: off, FC001: off}\npaths: [{severity: {}}]\ncomments: maybe\n"))
	for _, want := range []string{"s.yaml:1:1: unknown key \"severty\" in the settings: did you mean severity?", "the severity of FC601 cannot be changed", "FC999 is not a finding", `FC201 is "grave"`, "severity of FC911", "severity of FC001", "files is missing", `comments is "maybe"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := ParseSettings("s.yaml", []byte("# nothing yet\n")); err != nil {
		t.Errorf("settings that say nothing: %v", err)
	}
	// What has not the form of settings is no silence.
	for text, want := range map[string]string{
		"severity: FC208": "want a mapping", "severity: [FC208]": "severity is a list: want a mapping", "paths: {files: [a]}": "paths is a mapping: want a list",
		"severity: {FC208: off}\nseverity: {FC210: off}": `s.yaml:2:1: key "severity" of the settings appears twice`,
	} {
		if _, err := ParseSettings("s.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
