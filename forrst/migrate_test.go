package forrst_test

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
)

func TestMigrate(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		left           int
	}{
		{
			"in lines",
			`{
  "protocol": { "name": "forrst", "version": "0.1.0" },
  "id": "req_123",
  "result": null,
  "errors": [{
    "code": "RATE_LIMITED",
    "message": "Too many requests",
    "retryable": true,
    "details": {
      "retry_after": { "value": 5, "unit": "second" }
    }
  }]
}
`,
			`{
  "protocol": { "name": "forrst", "version": "0.1.0" },
  "id": "req_123",
  "result": null,
  "errors": [{
    "code": "RATE_LIMITED",
    "message": "Too many requests",
    "details": {
      "retry_after": { "value": 5, "unit": "second" }
    }
  }],
  "extensions": [
    {
      "urn": "urn:forrst:ext:retry",
      "data": {
        "allowed": true,
        "strategy": "fixed",
        "after": {
          "value": 5,
          "unit": "second"
        }
      }
    }
  ]
}
`, 0,
		},
		{
			"in one line, final",
			`{"errors":[{"retryable":false,"code":"UNAVAILABLE","message":"m"}],"id":"r"}`,
			`{"errors":[{"code":"UNAVAILABLE","message":"m"}],"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":false}}],"id":"r"}`, 0,
		},
		{
			"with other extensions",
			"{\n\t\"errors\": [{\"code\": \"X\", \"retryable\": true}],\n\t\"extensions\": [\n\t\t{\"urn\": \"urn:forrst:ext:tracing\", \"data\": {}}\n\t]\n}",
			"{\n\t\"errors\": [{\"code\": \"X\"}],\n\t\"extensions\": [\n\t\t{\"urn\": \"urn:forrst:ext:tracing\", \"data\": {}},\n\t\t{\n\t\t\t\"urn\": \"urn:forrst:ext:retry\",\n\t\t\t\"data\": {\n\t\t\t\t\"allowed\": true,\n\t\t\t\t\"strategy\": \"exponential\"\n\t\t\t}\n\t\t}\n\t]\n}", 0,
		},
		{
			"with the extension already",
			`{"errors":[{"code":"X","retryable":true}],"extensions":[{"urn":"urn:cline:forrst:ext:retry","data":{"allowed":false}}]}`,
			`{"errors":[{"code":"X"}],"extensions":[{"urn":"urn:cline:forrst:ext:retry","data":{"allowed":false}}]}`, 0,
		},
		{"an error alone", `{"code":"X","message":"m","retryable":true}`, `{"code":"X","message":"m"}`, 1},
		{"a schema", `{"properties":{"retryable":{"type":"boolean"}}}`, `{"properties":{"retryable":{"type":"boolean"}}}`, 1},
		{"nothing to do", `{"result":1}`, `{"result":1}`, 0},
		{"no JSON", `{"retryable": true,}`, `{"retryable": true,}`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := forrst.Migrate([]byte(tc.in), false)
			if string(m.Text) != tc.want || len(m.Left) != tc.left {
				t.Errorf("got\n%s\nleft %v; want\n%s\nleft %d", m.Text, m.Left, tc.want, tc.left)
			}
			if again := forrst.Migrate(m.Text, false); !bytes.Equal(again.Text, m.Text) {
				t.Errorf("a second run changes\n%s", again.Text)
			}
		})
	}
}

const page = "# Errors\n\nThe field `retryable` says it.\n\n```json\n{\n  \"id\": \"r\",\n  \"result\": null,\n  \"errors\": [\n    {\n      \"code\": \"UNAVAILABLE\",\n" +
	"      \"message\": \"m\",\n      \"retryable\": true\n    }\n  ]\n}\n```\n\n```json\n{ \"retryable\": ... }\n```\n\n```go\n// retryable\n```\n\nEnd.\n"

func TestMigrateMarkdown(t *testing.T) {
	m := forrst.Migrate([]byte(page), true)
	if bytes.Contains(m.Text, []byte("\"retryable\": true")) || !bytes.Contains(m.Text, []byte(forrst.URN)) || !bytes.HasSuffix(m.Text, []byte("\nEnd.\n")) {
		t.Errorf("got\n%s", m.Text)
	}
	if len(m.Changes) != 2 || len(m.Left) != 3 || m.Left[0].Line != 3 {
		t.Errorf("changes %v, left %v; want 2 and 3", m.Changes, m.Left)
	}
}

// TestDiffApplies applies the diff to the old text, which must make the new one.
func TestDiffApplies(t *testing.T) {
	for name, text := range map[string]string{
		"page.md": page, "end.md": strings.TrimSuffix(page, "\n\nEnd.\n"), "twice.md": page + strings.Repeat("\n", 20) + page,
		"near.md": page + page,
	} {
		m := forrst.Migrate([]byte(text), true)
		diff := m.Diff(name)
		if !strings.Contains(diff, "\n-      \"retryable\": true\n") {
			t.Errorf("%s: diff\n%s", name, diff)
		}
		if got := applyDiff(t, text, diff); got != string(m.Text) {
			t.Errorf("%s: the diff makes\n%s\nwant\n%s", name, got, m.Text)
		}
	}
	if m := forrst.Migrate([]byte("{}"), false); m.Diff("x") != "" {
		t.Error("a diff of nothing")
	}
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n$`)

// applyDiff is a strict patch(1): every context line and every number must be
// right.
func applyDiff(t *testing.T, text, diff string) string {
	t.Helper()
	old, at, out := slices.Collect(strings.Lines(text)), 0, []string{}
	oldEnd, newEnd := 0, 0
	for line := range strings.Lines(diff) {
		switch m := hunkHead.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ "):
		case m != nil:
			if at != oldEnd || len(out) != newEnd {
				t.Fatalf("the hunk before %q has other lengths than it says", line)
			}
			var n [4]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+1])
			}
			out = append(out, old[at:n[0]-1]...)
			at = n[0] - 1
			if len(out) != n[2]-1 {
				t.Fatalf("%q begins at line %d of the new text", line, len(out)+1)
			}
			oldEnd, newEnd = at+n[1], len(out)+n[3]
		case strings.HasPrefix(line, "\\"):
			out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
		case line[0] == '+':
			out = append(out, line[1:])
		default:
			if strings.TrimSuffix(old[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				t.Fatalf("line %d is %q, the diff says %q", at+1, old[at], line)
			}
			if line[0] == ' ' {
				out = append(out, old[at])
			}
			at++
		}
	}
	if at != oldEnd || len(out) != newEnd {
		t.Fatal("the last hunk has other lengths than it says")
	}
	return strings.Join(append(out, old[at:]...), "")
}

// FuzzMigrate: a migrated envelope says in phase 3 what the old one said in
// phase 1, and a second run changes nothing.
func FuzzMigrate(f *testing.F) {
	f.Add([]byte(`{"protocol":{"name":"forrst"},"id":"r","result":null,"errors":[{"code":"UNAVAILABLE","message":"m","retryable":true}]}`))
	f.Add([]byte(`{"protocol":{"name":"forrst"},"id":"r","result":null,"errors":[{"code":"X","retryable":false,"details":{"retry_after":{"value":1,"unit":"day"}}}],"extensions":[]}`))
	f.Add([]byte(`{"protocol":{"name":"forrst"},"id":"r","errors":[{"retryable":true,"code":"RATE_LIMITED"},{"code":"INTERNAL_ERROR","retryable":true}]}`))
	f.Add([]byte(page))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, markdown := range []bool{false, true} {
			m := forrst.Migrate(data, markdown)
			if again := forrst.Migrate(m.Text, markdown); len(again.Changes) > 0 {
				t.Fatalf("a second run changes %v", again.Changes)
			}
			_ = m.Diff("x")
		}
		m := forrst.Migrate(data, false)
		before := forrst.Phase1.Advise(forrst.Message{Body: data, Now: time.Unix(1, 0)})
		if len(m.Changes) == 0 || before.Outcome != forrst.Failed {
			return
		}
		after := forrst.Phase3.Advise(forrst.Message{Body: m.Text, Now: time.Unix(1, 0)})
		if a, b := retries(before.Failure), retries(after.Failure); a != b {
			t.Errorf("retries: %v before, %v after\n%s\n%s", a, b, data, m.Text)
		}
	})
}

func retries(f forbear.Failure) bool {
	p := forbear.Policy{Kind: forbear.Event}
	return forbear.Decide(&p, forbear.State{}, f, time.Unix(1, 0), func() float64 { return 0 }).Retry
}
