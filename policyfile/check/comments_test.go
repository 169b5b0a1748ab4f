package check

import (
	"slices"
	"strings"
	"testing"
)

// proxied is an nginx file with a finding on its fourth line, below a comment.
const proxied = `upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; }
server {
    COMMENT
    proxy_next_upstream error non_idempotent;
    proxy_next_upstream_timeout 3m;
    location / { proxy_pass http://a; }
}
`

func TestComments(t *testing.T) {
	for _, tt := range []struct {
		name, comment string
		want          []string // ids that count, but notes
		off           bool
	}{
		{"none", "# plain", []string{"FC202", "FC301"}, false},
		{"lifts", "# forbear:ignore FC301 until=2027-03-01 the backend drops repetitions", []string{"FC202"}, false},
		{"lifts one of two", "# forbear:ignore FC301,FC306 until=2027-03-01 the backend drops repetitions", []string{"FC202"}, false},
		{"of another finding", "# forbear:ignore FC306 until=2027-03-01 the backend drops repetitions", []string{"FC202", "FC301", "FC912"}, false},
		{"without an end", "# forbear:ignore FC301 the backend drops repetitions", []string{"FC202", "FC301", "FC911"}, false},
		{"without a reason", "# forbear:ignore FC301 until=2027-03-01", []string{"FC202", "FC301", "FC911"}, false},
		{"ended", "# forbear:ignore FC301 until=2026-11-19 the backend drops repetitions", []string{"FC202", "FC301", "FC911"}, false},
		{"the last day", "# forbear:ignore FC301 until=2026-11-20 the backend drops repetitions", []string{"FC202"}, false},
		{"for ever", "# forbear:ignore FC301 until=2030-01-01 the backend drops repetitions", []string{"FC202", "FC301", "FC911"}, false},
		{"unknown finding", "# forbear:ignore FC999 until=2027-03-01 x", []string{"FC202", "FC301", "FC911"}, false},
		{"of certificates", "# forbear:ignore FC601 until=2027-03-01 x", []string{"FC202", "FC301", "FC911"}, false},
		{"in a text that ends above", "  # forbear:ignore FC301 until=2027-03-01 x", []string{"FC202", "FC301", "FC911"}, false},
		{"behind a directive", "proxy_read_timeout 5s; # forbear:ignore FC301 until=2027-03-01 x", []string{"FC202", "FC301"}, false},
		{"switched off", "# forbear:ignore FC301 until=2027-03-01 the backend drops repetitions", []string{"FC202", "FC301"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := parse(t, "f.conf", strings.Replace(proxied, "COMMENT", tt.comment, 1))
			got := Run([]Source{s}, Options{Now: today, Settings: &Settings{NoComments: tt.off}})
			found := slices.DeleteFunc(ids(got.Findings), func(id string) bool { return id == "FC002" || id == "FC207" })
			slices.Sort(found)
			if !slices.Equal(found, tt.want) {
				t.Errorf("got %v, want %v", found, tt.want)
			}
		})
	}
}

// In a policy file a rule of the standard is lifted by a signature, and not by a
// line that anyone may write.
func TestCommentsAreNoWaivers(t *testing.T) {
	s := parse(t, "p.yaml", "service: a\ndependencies:\n  b:\n    owner: a\n    strict: true\n    # forbear:ignore FC201 until=2027-03-01 it is slow\n    max_retries: 6\n")
	if found := ids(Run([]Source{s}, Options{Now: today}).Findings); !slices.Contains(found, "FC201") || !slices.Contains(found, "FC911") {
		t.Errorf("got %v, want FC201 and FC911", found)
	}
}

// A comment in the wrong place is told the right one.
func TestCommentElsewhere(t *testing.T) {
	text := strings.Replace(strings.Replace(proxied, "    COMMENT\n", "", 1), "    location", "    # forbear:ignore FC301 until=2027-03-01 the backend drops repetitions\n    location", 1)
	for _, f := range Run([]Source{parse(t, "f.conf", text)}, Options{Now: today}).Findings {
		if f.ID == "FC912" {
			if want := "line 6 has no FC301, but on line 3"; !strings.Contains(f.Message, want) {
				t.Errorf("got %q, want %q", f.Message, want)
			}
			return
		}
	}
	t.Error("nothing is said of the comment")
}
