package durable

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
)

// Every list ends: what there is more of is on further pages, each of which has no more
// than was asked for.
func TestAlertsAndTokensInPages(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		s, _ := start(t, Options{Database: name, Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
		var names, reasons []string
		for i := range 5 {
			names, reasons = append(names, fmt.Sprintf("token-%d", i)), slices.Insert(reasons, 0, fmt.Sprintf("reason-%d", i)) // the newest first
			if _, _, err := s.DB.Tokens().Create(t.Context(), sqlstore.Token{Name: names[i], Scope: sqlstore.ScopeReadOnly}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := s.DB.DeadLetters().Raise(t.Context(), queue.Alert{Queue: "q", Reason: reasons[0]}); err != nil {
				t.Fatal(err)
			}
		}
		get := func(query string) (int, map[string]any) {
			return call(t, s, "GET", query, "", "Authorization", "Bearer the operator's own token")
		}
		for _, c := range []struct {
			list, field string
			want        []string
		}{{"alerts", "reason", reasons}, {"tokens", "name", names}} {
			var got []string
			for after, n := "", 0; n < 3; n++ {
				status, page := get("/v1/" + c.list + "?limit=2" + after)
				items, _ := page[c.list].([]any)
				if status != 200 || len(items) > 2 {
					t.Fatalf("%s: %d %v, want a page of two", c.list, status, page)
				}
				for _, i := range items {
					got = append(got, fmt.Sprint(i.(map[string]any)[c.field]))
				}
				if page["next"] == "" {
					break
				}
				after = "&after=" + fmt.Sprint(page["next"])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the pages of %s have %q, want %q", c.list, got, c.want)
			}
			if status, all := get("/v1/" + c.list); status != 200 || len(all[c.list].([]any)) != 5 || all["next"] != "" {
				t.Errorf("%s without a limit: %d %v", c.list, status, all)
			}
			for _, limit := range []string{"0", "1001", "x"} {
				if status, _ := get("/v1/" + c.list + "?limit=" + limit); status != 400 {
					t.Errorf("%s with a limit of %s: %d, want 400", c.list, limit, status)
				}
			}
		}
		if status, _ := get("/v1/alerts?after=x"); status != 400 {
			t.Errorf("alerts behind none: %d, want 400", status)
		}
	})
}
