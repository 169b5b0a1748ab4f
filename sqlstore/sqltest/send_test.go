package sqltest

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// sender opens a database of PostgreSQL with the endpoint a, in a schema of its own, for a
// role that has no more rights than it needs.
func sender(t *testing.T) outboxApp {
	t.Helper()
	place := pgtest.Shared(t).Database(t)
	admin, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	run1(t, admin, `CREATE SCHEMA forbear`)
	db := open(t, place+"&search_path=forbear")
	putOneAndDeleteOne(t, db, "gone")
	run1(t, admin, `GRANT USAGE ON SCHEMA forbear TO shop`, `GRANT INSERT ON forbear.forbear_outbox TO shop`,
		`GRANT SELECT (id, deleted) ON forbear.forbear_endpoints TO shop`, `GRANT SELECT (id) ON forbear.forbear_applications TO shop`)
	s := outboxApp{}
	if s.DB, err = sql.Open("pgx", place); err != nil { // the superuser's, for rows
		t.Fatal(err)
	}
	s.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = s.Close() })
	run1(t, s.DB, `SET ROLE shop`)
	return s
}

// The function inserts what it is told, for a caller with few rights and another search
// path, and without touching the payload: as text for a bytea its backslashes would count.
func TestSend(t *testing.T) {
	s := sender(t)
	for _, tt := range []struct{ call, want string }{
		{`'t', '{"a":"\\x41\n"}', endpoint => 'a', message_id => 'm1'`, `m1|a|t|||||||||0|{"a":"\\x41\n"}`},
		{`'t', '\x41', application => 'tenant', message_id => 'm2'`, `m2||t||||||||tenant|0|\x41`},
		{
			`type => 't', payload => jsonb_build_object('n', 1), endpoint => 'a', message_id => 'm3', order_key => 'k', source => '/s', subject => 'u',
				idempotency_key => 'i', correlation_id => 'c', content_type => 'text/plain', headers => '{"X-A":"1"}', not_before => '2030-01-01T00:00:00Z', check_endpoint => true`,
			`m3|a|t|/s|u|k|i|c|text/plain|[{"name": "X-A", "value": "1"}]||1893456000000000|{"n": 1}`,
		},
	} {
		var id string
		if err := s.QueryRowContext(t.Context(), `SELECT forbear.forbear_send(`+tt.call+`)`).Scan(&id); err != nil {
			t.Fatalf("%s: %v", tt.call, err)
		}
		run1(t, s.DB, `RESET ROLE`, `SET search_path = forbear`)
		rows := s.rows(t)
		if got := rows[len(rows)-1]; got != tt.want || !strings.HasPrefix(got, id+"|") {
			t.Errorf("%s: id %s, row\n%s\nwant\n%s", tt.call, id, got, tt.want)
		}
		run1(t, s.DB, `RESET search_path`, `SET ROLE shop`)
	}
	var first, second string
	if err := s.QueryRowContext(t.Context(), `SELECT forbear.forbear_send('t', '1', 'a'), forbear.forbear_send('t', '1', 'a')`).Scan(&first, &second); err != nil ||
		first == second || !strings.HasPrefix(first, "msg_") {
		t.Errorf("ids %q and %q, %v", first, second, err)
	}
}

// What could never be delivered is refused in the application's own transaction, with
// words that say why.
func TestSendRefuses(t *testing.T) {
	s := sender(t)
	long := `repeat('x', 300)`
	for _, tt := range []struct{ call, want string }{
		{`'t', '1'`, "name an endpoint or an application"},
		{`'t', '1', endpoint => 'a', application => 'b'`, "name an endpoint or an application"},
		{`'t', '1', endpoint => 'a b'`, "1 to 64 visible"},
		{`'t', '1', 'a', message_id => 'a b'`, "message_id is not"},
		{`'t', '1', 'a', message_id => ` + long, "message_id is not"},
		{`'t', '1', 'a', idempotency_key => ` + long, "idempotency_key is not"},
		{`'t', NULL::text, 'a'`, "payload is NULL"},
		{`'t', repeat('x', 2000000), 'a'`, "more than 1 MiB"},
		{long + `, '1', 'a'`, "more than 256 bytes"},
		{`'t', '1', 'a', subject => E'a\nb'`, "control characters"},
		{`'t', '1', 'a', headers => '[]'`, "headers is no JSON object"},
		{`'t', '1', 'b', check_endpoint => true`, "unknown endpoint 'b'"},
		{`'t', '1', 'gone', check_endpoint => true`, "unknown endpoint 'gone'"},
		{`'t', '1', application => 'b', check_endpoint => true`, "unknown application 'b'"},
		{`'t', '1', 'a', not_before => '1970-01-21'`, "forbear_outbox_not_before_is_in_microseconds"},
	} {
		if _, err := s.ExecContext(t.Context(), `SELECT forbear.forbear_send(`+tt.call+`)`); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.100s: %v, want %q", tt.call, err, tt.want)
		}
	}
}

// A row that is surely wrong is refused when it is inserted, on both databases, and a
// message_id is made.
func TestOutboxRefusesRow(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		insert := func(columns, values string) error {
			_, err := s.ExecContext(t.Context(), `INSERT INTO forbear_outbox (`+columns+`, body) VALUES (`+values+`, 'x')`)
			return err
		}
		for _, tt := range []struct{ columns, values, want string }{
			{"endpoint, not_before", "'a', 1800000000", "microseconds"},
			{"endpoint, not_before", "'a', 1800000000000", "microseconds"},
			{"endpoint, not_before", "'a', 1800000000000000000", "microseconds"},
			{"endpoint, application", "'a', 'b'", "endpoint_or_application"},
			{"endpoint, application", "NULL, ''", "endpoint_or_application"},
		} {
			if err := insert(tt.columns, tt.values); err == nil || !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(err.Error(), "an ", ""), " ", "_"), tt.want) {
				t.Errorf("(%s) of (%s): %v, want %q", tt.values, tt.columns, err, tt.want)
			}
		}
		for _, values := range []string{"'a', 0", "'a', NULL", "'a', 1800000000000000"} {
			if err := insert("endpoint, not_before", values); err != nil {
				t.Errorf("(%s): %v", values, err)
			}
		}
		if rows := s.rows(t); len(rows) != 3 || !strings.HasPrefix(rows[0], "msg_") || rows[0][:30] == rows[1][:30] {
			t.Errorf("in the outbox: %q", rows)
		}
	})
}
