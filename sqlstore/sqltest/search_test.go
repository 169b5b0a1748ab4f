package sqltest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// crowded adds n messages that have arrived, and as many dead letters, of another tenant's.
func (s outboxApp) crowded(t *testing.T, n int) {
	t.Helper()
	numbers := fmt.Sprintf("(SELECT g AS i FROM generate_series(1, %d) g) n", n)
	if s.box.SQLite {
		numbers = fmt.Sprintf("(WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) SELECT i FROM c) n", n)
	}
	for _, text := range []string{
		`INSERT INTO forbear_deliveries (message, message_id, endpoint, state, due, start, finished) SELECT (SELECT min(seq) FROM forbear_messages), 'x' || n.i, 'theirs', 2, 0, 0, 1 FROM ` + numbers,
		`INSERT INTO forbear_letters (id, queue, dest, application, event_id, reason, error_type, state, dead_at, meta, sealed) SELECT 'x' || n.i, 'webhooks', 'theirs', 'other', 'x' || n.i, 'exhausted', '', 'dead', 0, l.meta, l.sealed
			FROM ` + numbers + `, (SELECT meta, sealed FROM forbear_letters WHERE id = 'first') l`,
		`ANALYZE`,
	} {
		if _, err := s.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// A tenant's messages and letters are on its first page, however many those of others are
// that came behind them: more than one look takes. CROWD says how many, for measurements.
func TestTenantFindsItsOwnInACrowd(t *testing.T) {
	crowd, _ := strconv.Atoi(os.Getenv("CROWD"))
	crowd = max(crowd, ringtest.Size(12_000, 25_000))
	outboxApps(t, func(t *testing.T, s outboxApp) {
		for id, app := range map[string]string{"mine": "customer", "theirs": "other"} {
			if _, err := s.store.PutApplication(t.Context(), webhook.Application{ID: app}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.store.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/", Application: app}); err != nil {
				t.Fatal(err)
			}
		}
		letters := s.db.DeadLetters()
		put := func(id string) {
			t.Helper()
			if _, err := s.store.Accept(t.Context(), []webhook.Message{{ID: id, Endpoints: []string{"mine"}, Body: []byte("{}")}}, nil); err != nil {
				t.Fatal(err)
			}
			if err := letters.Put(t.Context(), deadletter.Letter{ID: id, Queue: webhook.Queue, Destination: "mine", EventID: id, Reason: "exhausted"}); err != nil {
				t.Fatal(err)
			}
		}
		put("first")
		s.crowded(t, crowd)
		began := time.Now()
		page, err := s.store.Messages(t.Context(), store.MessageFilter{Application: "customer"}, 0, 100)
		took := time.Since(began)
		// A page may end early after a second, which a busy machine uses up.
		for last := took; err == nil && page.Next != 0 && len(page.Messages) == 0 && last >= time.Second; last = time.Since(began) {
			began = time.Now()
			page, err = s.store.Messages(t.Context(), store.MessageFilter{Application: "customer"}, page.Next, 100)
		}
		if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != "first" || page.Next != 0 {
			t.Errorf("a page has %+v, next %d, %v", page.Messages, page.Next, err)
		}
		began = time.Now()
		list, err := letters.List(t.Context(), queue.Filter{Application: "customer", State: deadletter.Dead})
		if err != nil || len(list) != 1 || list[0].ID != "first" || list[0].Application != "customer" {
			t.Errorf("letters are %+v, %v", list, err)
		}
		t.Logf("in %d of others: a page of messages in %v, of letters in %v", crowd, took, time.Since(began))

		explain := "EXPLAIN "
		if s.box.SQLite {
			explain = "EXPLAIN QUERY PLAN "
		}
		for _, state := range []string{"", " AND state = 'dead'"} {
			if plan := s.plan(t, explain+`SELECT meta FROM forbear_letters WHERE 1 = 1 AND application = 'customer'`+state+` ORDER BY seq LIMIT 100`); !strings.Contains(plan, "forbear_letters_application") {
				t.Errorf("letters of an application%s are found by %s", state, plan)
			}
		}
	})
}

// A search that has no patience looks at one step of the rows, and says where it goes on.
// What an index has is found at once: few of many, by their endpoint and state.
func TestSearchInSteps(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		for _, id := range []string{"first", "second"} {
			if _, err := s.store.Accept(t.Context(), []webhook.Message{{ID: id, Endpoints: []string{"mine"}, Type: "rare", Body: []byte("{}")}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.db.DeadLetters().Put(t.Context(), deadletter.Letter{ID: "first", Queue: webhook.Queue, Destination: "mine", EventID: "first", Reason: "exhausted"}); err != nil {
			t.Fatal(err)
		}
		s.crowded(t, 2500)
		look := func(f store.MessageFilter) (ids []string, pages int) {
			for before := int64(0); ; {
				page, err := s.store.Messages(t.Context(), f, before, 10)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				for _, m := range page.Messages {
					ids = append(ids, m.ID)
				}
				if before = page.Next; before == 0 {
					return ids, pages
				}
			}
		}
		all := store.MessageFilter{Endpoints: []string{"mine"}, Patience: 1}
		if ids, pages := look(all); fmt.Sprint(ids) != "[second first]" || pages != 3 {
			t.Errorf("without an index: %v on %d pages, want 3", ids, pages)
		}
		for states, want := range map[string]string{"waiting": "[second first]", "waiting dead": "[second first]", "dead": "[]", "dead canceled": "[]", "held": "[]"} {
			all.States = strings.Fields(states)
			if ids, pages := look(all); fmt.Sprint(ids) != want || pages != 1 {
				t.Errorf("%s: %v on %d pages, want %s on one", states, ids, pages, want)
			}
		}
		if _, err := s.store.Cancel(t.Context(), []int64{1}, "ann"); err != nil {
			t.Fatal(err)
		}
		all.States = []string{"canceled", "waiting"}
		all.Type = "rare"
		if ids, pages := look(all); fmt.Sprint(ids) != "[second first]" || pages != 1 {
			t.Errorf("canceled or waiting: %v on %d pages", ids, pages)
		}
	})
}

// Each list of dead letters that the console asks for is found by an index.
func TestLettersAreFoundByIndexes(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		if _, err := s.store.Accept(t.Context(), []webhook.Message{{ID: "first", Endpoints: []string{"mine"}, Body: []byte("{}")}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.db.DeadLetters().Put(t.Context(), deadletter.Letter{ID: "first", Queue: webhook.Queue, Destination: "mine", EventID: "first", Reason: "exhausted"}); err != nil {
			t.Fatal(err)
		}
		s.crowded(t, 2500)
		explain := "EXPLAIN "
		if s.box.SQLite {
			explain = "EXPLAIN QUERY PLAN "
		}
		for condition, want := range map[string]string{
			`dest = 'mine' AND substr(dest, 1, 64) = substr(CAST('mine' AS TEXT), 1, 64) AND COALESCE(state, '') = 'dead'`: "forbear_letters_to",
			`cause = 'none' AND COALESCE(state, '') = 'dead'`:                                                              "forbear_letters_cause",
			`reason = 'none' AND state = 'dead'`:                                                                           "forbear_letters_reason",
		} {
			if plan := s.plan(t, explain+`SELECT seq FROM forbear_letters WHERE 1 = 1 AND `+condition+` ORDER BY seq LIMIT 100`); !strings.Contains(plan, want) {
				t.Errorf("%s: by %s, want %s", condition, plan, want)
			}
		}
	})
}

// plan returns what EXPLAIN says of a statement.
func (s outboxApp) plan(t *testing.T, text string) string {
	t.Helper()
	rows, err := s.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(any)
		}
		if err := rows.Scan(row...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, *row[len(row)-1].(*any))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
