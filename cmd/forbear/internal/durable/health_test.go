package durable

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// What cannot work with the database says so, with a cause that names nothing of it, and
// works again when the database does.
func TestHealthOfParts(t *testing.T) {
	for table, c := range map[string]struct{ part, notifier string }{
		"forbear_alerts": {notifier: "pager"},
		"forbear_outbox": {part: "outbox"},
		"forbear_jobs":   {part: "redrives"},
	} {
		t.Run(table, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pager := notify(func(queue.Alert) error { return nil })
				s, _ := start(t, Options{Notifiers: []queue.Notifier{pager}, Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
				put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				rename := func(from, to string) {
					t.Helper()
					db, err := sql.Open("sqlite", "file:"+s.path)
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					for range 1000 { // the service writes, too
						if _, err = db.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to); err == nil {
							return
						}
						time.Sleep(time.Millisecond)
					}
					t.Fatal(err)
				}
				ill := func() (names, errs []string) {
					t.Helper()
					status, v := call(t, s, "GET", "/v1/alerts/health", "")
					if status != 200 {
						t.Fatalf("%d %v", status, v)
					}
					text, _ := json.Marshal(v)
					var health struct{ Notifiers, Parts []queue.Health }
					if err := json.Unmarshal(text, &health); err != nil || len(health.Notifiers) != 2 || len(health.Parts) < 10 {
						t.Fatalf("%s, %v", text, err)
					}
					for _, h := range slices.Concat(health.Notifiers, health.Parts) {
						if !h.Healthy {
							names, errs = append(names, h.Name), append(errs, h.Error)
						}
					}
					return names, errs
				}
				time.Sleep(time.Minute)
				if names, errs := ill(); names != nil {
					t.Fatalf("while all is well: %q %q", names, errs)
				}
				rename(table, "elsewhere")
				time.Sleep(time.Minute)
				want := []string{c.part}
				if c.notifier != "" {
					want = []string{"log", pager.Name()} // no alert reaches them
				}
				names, errs := ill()
				if !slices.Equal(names, want) || !strings.Contains(errs[0], "failing since ") || strings.Contains(strings.Join(errs, ""), "forbear_") {
					t.Errorf("without the table %q: %q %q, want %q", table, names, errs, want)
				}
				if c.part != "" {
					if n := gauge(t, s, "webhook_part_healthy", c.part); n != 0 {
						t.Errorf("the metric is %v", n)
					}
				}
				rename("elsewhere", table)
				time.Sleep(time.Minute)
				if names, errs := ill(); names != nil {
					t.Errorf("when it is there again: %q %q", names, errs)
				}
			})
		})
	}
}
