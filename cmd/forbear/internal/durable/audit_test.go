package durable

import (
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// The audit trail is read in pages, from the newest, to its end, and by who, what and
// when.
func TestAuditInPages(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database})
		defer stop()
		began := time.Now().Add(-time.Second)
		for i := range 25 {
			who := []string{"ci (ann) at 127.0.0.1", "(ci-2) at 127.0.0.1", "ci", "cities at 127.0.0.1", "bob (ci) at 127.0.0.1"}[i%5]
			entry := queue.Entry{Who: who, Action: "reveal", Target: fmt.Sprint("m", i)}
			if i == 7 {
				entry.Action, entry.Target = "redrive", "100%_"
			}
			if err := s.DB.DeadLetters().Audit(t.Context(), entry); err != nil {
				t.Fatal(err)
			}
		}
		all := func(query string) (targets []string) {
			t.Helper()
			for after := ""; ; {
				status, v := call(t, s, "GET", "/v1/audit?limit=4&after="+after+query, "")
				if status != 200 {
					t.Fatalf("%s: %d %v", query, status, v)
				}
				for _, e := range v["audit"].([]any) {
					targets = append(targets, e.(map[string]any)["target"].(string))
				}
				if after = v["next"].(string); after == "" {
					return targets
				}
			}
		}
		if got := all(""); len(got) != 25 || got[0] != "m24" || got[24] != "m0" {
			t.Errorf("all are %v", got)
		}
		// Many others are passed over, page by page.
		if _, err := outside(t, database).ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)
			INSERT INTO forbear_audit (at, who, action, target) SELECT (SELECT max(at) FROM forbear_audit), 'x', 'many', 'x' FROM n`); err != nil {
			t.Fatal(err)
		}
		if _, v := call(t, s, "GET", "/v1/audit?action=redrive", ""); len(v["audit"].([]any)) != 0 || v["next"] == "" {
			t.Errorf("a page that looked at 10,000 lines: %v", v)
		}
		for query, want := range map[string]string{
			"&who=ci":                     "[m24 m22 m20 m19 m17 m15 m14 m12 m10 m9 100%_ m5 m4 m2 m0]",
			"&who=ann&target=m5":          "[m5]",
			"&action=redrive":             "[100%_]",
			"&target=100%25_":             "[100%_]",
			"&who=c%25":                   "[]",
			"&since=2099-01-01T00:00:00Z": "[]",
			"&until=" + began.UTC().Format(time.RFC3339):                           "[]",
			"&target=m3&since=" + began.Add(-time.Hour).UTC().Format(time.RFC3339): "[m3]",
		} {
			if got := fmt.Sprint(all(query)); got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
	})
}
