package seed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// seeding is one call of Fill.
type seeding struct {
	Config

	pool   *sql.DB
	server bool // PostgreSQL
	now    time.Time
}

// endpointID is the id of an endpoint by its number, from 1 on.
func endpointID(n int) string { return fmt.Sprintf("endpoint-%08d", n) }

// statement is one that multiplies, with words in braces: see words.
type statement string

// The statements, in their order. A message's number is n.i.
const (
	endpoints statement = `INSERT INTO forbear_endpoints (id, spec, state, reason, disabled_by, since, version, changed)
		SELECT 'endpoint-' || {pad n.i}, replace(e.spec, '{template}', 'endpoint-' || {pad n.i}), CASE WHEN n.i % 100 = 60 THEN 'disabled' ELSE 'enabled' END,
			CASE WHEN n.i % 100 = 60 THEN 'no success for 24h0m0s' ELSE '' END, CASE WHEN n.i % 100 = 60 THEN '{by forbear}' ELSE '' END, {began}, 1, n.i + 10
		FROM {n endpoints} CROSS JOIN forbear_endpoints e WHERE e.id = '{template}'`
	// The messages of letters are of the kind that their letters are, or none could be redriven.
	messages statement = `INSERT INTO forbear_messages (seq, meta, body, created)
		SELECT {base} + n.i, replace(t.meta, '{template}', CAST(n.i * 7919 % 50000 AS TEXT)), t.body, {accepted}
		FROM (SELECT i, i % {ratio} = 0 OR i % 10 = 3 AND i > {messages} - 10 * {stuck all} AS lettered FROM {n messages}) n JOIN (SELECT d.message_id, m.meta, m.body FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.endpoint = '{template}') t
		ON t.message_id = '{template}' || CASE WHEN n.i % 100000 = 77 THEN '{rare}' ELSE CASE CASE WHEN n.lettered THEN 0 ELSE n.i % 4 END {kinds} END END`
	// {stuck} numbers the messages to the endpoint that is stuck from 0 on; others have -1.
	deliveries statement = `INSERT INTO forbear_deliveries (id, message, message_id, endpoint, state, due, start, progress, fence, claims, letter, finished, written)
		SELECT {base} + i, {base} + i, 'msg_' || {pad i}, endpoint, state, CASE WHEN state = 0 THEN {now} + 3600000000 + i % 480 * 60000000 ELSE at END, at,
			CASE WHEN state = 2 OR state = 5 THEN NULL ELSE replace({progress}, '{mark 0}', {stamp at}) END, CASE state WHEN 2 THEN 1 WHEN 5 THEN 0 ELSE 3 END, CASE state WHEN 2 THEN 1 WHEN 5 THEN 0 ELSE 3 END,
			CASE WHEN state = 2 AND i % {ratio} = 0 THEN 'dlq_' || {pad i} END, CASE WHEN state <> 0 THEN at + {after 3} END, at + {after 3}
		FROM (SELECT i, stuck, {accepted} AS at,
			CASE WHEN stuck >= 0 THEN '{stuck id}' WHEN i % {ratio} = 0 THEN 'endpoint-' || {pad {failing}} ELSE 'endpoint-' || {pad i * 7919 % {endpoints} + 1} END AS endpoint,
			CASE WHEN stuck >= 0 THEN CASE WHEN stuck < {stuck dead} THEN 3 ELSE 0 END
				WHEN i % {ratio} = 0 THEN CASE WHEN i / 7 / {ratio} % 10 IN (7, 8) THEN 2 ELSE 3 END
				WHEN i % 97 = 5 AND i > {messages} / 8 * 7 THEN 0 WHEN i % 1009 = 7 THEN 5 ELSE 2 END AS state
			FROM (SELECT i, CASE WHEN i % 10 = 3 AND i > {messages} - 10 * {stuck all} THEN (i - {messages} + 10 * {stuck all}) / 10 ELSE -1 END AS stuck FROM {n messages}) n) d`
	attempts statement = `INSERT INTO forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker, cause)
		SELECT id, c.i, c.i, start, start + {after c.i}, 120000, CASE WHEN c.i < 3 AND state <> 2 THEN 7000000 ELSE 0 END, CASE WHEN state = 2 THEN '' ELSE {error type} END, CASE WHEN state = 2 THEN 200 ELSE {status} END, 'seed',
			CASE WHEN state = 2 THEN NULL ELSE {cause} END
		FROM forbear_deliveries CROSS JOIN (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) c WHERE c.i <= claims AND id > {base}`
	letters statement = `INSERT INTO forbear_letters (id, queue, dest, event_id, reason, error_type, state, dead_at, redrives, redriven, redriver, job, outcome, discard, cause, meta, sealed)
		SELECT 'dlq_' || {pad i}, t.queue, t.dest, 'msg_' || {pad i}, t.reason, t.error_type, CASE WHEN d.state = 2 THEN 'resolved' WHEN discarded THEN 'discarded' ELSE 'dead' END, at,
			CASE WHEN d.state = 2 THEN 1 ELSE 0 END, CASE WHEN d.state = 2 THEN at + 60000000 END, CASE WHEN d.state = 2 THEN 'ada at 127.0.0.1' END, CASE WHEN d.state = 2 THEN 'rdr_' || {pad i % {redrives} + 1} END,
			CASE WHEN d.state = 2 THEN 'delivered' ELSE '' END, CASE WHEN discarded THEN 'the customer has left' END, t.cause,
			{letter meta}, t.sealed
		FROM (SELECT id - {base} AS i, endpoint, state, start, start + {after 3} AS at, endpoint <> '{stuck id}' AND (id - {base}) / 7 / {ratio} % 10 = 9 AS discarded FROM forbear_deliveries
			WHERE id > {base} AND (endpoint = '{stuck id}' AND state = 3 OR endpoint <> '{stuck id}' AND (id - {base}) % {ratio} = 0)) d
		JOIN forbear_letters t ON t.id = '{template}' || d.endpoint ORDER BY at`
	redrives statement = `INSERT INTO forbear_jobs (id, spec, state, created) SELECT 'rdr_' || {pad n.i}, replace(j.spec, '{template}', 'rdr_' || {pad n.i}), j.state, {began} + n.i * 60000000
		FROM {n redrives} CROSS JOIN forbear_jobs j WHERE j.id = '{template}'`
	records statement = `INSERT INTO forbear_idempotency (scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, completed, expires, status, header, body, tombstone, note, written)
		SELECT 'tenant-' || CAST(n.i % 20 AS TEXT), {pad n.i} || substr(r.hash, 9), r.fingerprint, r.operation, r.state, r.rerun, r.owner, r.fence, r.attempt, r.lease, r.created - n.i * 30000000, r.completed, r.expires, r.status, r.header, r.body, r.tombstone, r.note, r.written
		FROM {n keys} JOIN forbear_idempotency r ON r.scope = '{template}' AND r.state = CASE WHEN n.i <= {held} THEN 4 ELSE 2 END`
	tallies statement = `INSERT INTO forbear_tallies (endpoint, slot, owner, counts)
		SELECT e.id, {slot} - n.i * 8 - e.version, 'seed', CASE WHEN e.id IN (SELECT substr(id, 9) FROM forbear_letters WHERE id LIKE '{template}%') THEN {counts of failures} ELSE {counts} END
		FROM forbear_endpoints e CROSS JOIN {n slots}`
	audit statement = `INSERT INTO forbear_audit (at, who, action, target, detail)
		SELECT dead_at + 60000000, 'ada at 127.0.0.1', CASE state WHEN 'discarded' THEN 'discard' WHEN 'resolved' THEN 'redrive' ELSE 'reveal' END, id, CASE state WHEN 'discarded' THEN 'the customer has left' ELSE '' END
		FROM forbear_letters WHERE state <> 'dead' OR seq % 50 = 0 ORDER BY dead_at`
)

// removed are the rows that were multiplied.
var removed = []statement{
	`DELETE FROM forbear_letters WHERE id LIKE '{template}%'`, `DELETE FROM forbear_messages WHERE seq <= {base}`, `DELETE FROM forbear_deliveries WHERE id <= {base}`,
	`DELETE FROM forbear_endpoints WHERE id = '{template}'`, `DELETE FROM forbear_jobs WHERE id = '{template}'`, `DELETE FROM forbear_idempotency WHERE scope = '{template}'`,
	`DELETE FROM forbear_alerts`, `DELETE FROM forbear_audit WHERE target = '{template}'`,
}

// multiply runs the statements as one transaction.
func (s *seeding) multiply(ctx context.Context) error {
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var base int64
	if err := tx.QueryRowContext(ctx, `SELECT max(m) FROM (SELECT max(id) AS m FROM forbear_deliveries UNION ALL SELECT max(seq) FROM forbear_messages) x`).Scan(&base); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	list := append([]statement{endpoints, messages, deliveries, attempts, letters, redrives, records, tallies}, removed...)
	list = append(list, audit)
	if s.server {
		list = append(list, `SELECT setval('forbear_deliveries_id_seq', {base} + {messages}), setval('forbear_messages_seq_seq', {base} + {messages})`)
	}
	words := s.words(base)
	for _, one := range list {
		if _, err := tx.ExecContext(ctx, words(string(one))); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", words(string(one)), err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	last := "PRAGMA wal_checkpoint(TRUNCATE)"
	if s.server {
		last = "VACUUM ANALYZE" // as autovacuum would in a while
	}
	_, err = s.pool.ExecContext(ctx, last)
	return err
}

// words returns what puts this seeding's numbers and its database's functions in the
// place of the words in braces.
func (s *seeding) words(base int64) func(string) string {
	began := s.now.Add(-time.Minute - time.Duration(s.Messages)*step).UnixMicro()
	ratio := s.Messages / s.Letters
	rows := func(n int) string {
		return fmt.Sprintf("(WITH RECURSIVE s(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i FROM s) n", n)
	}
	stamp := func(us string) string {
		if s.server {
			return `to_char(to_timestamp((` + us + `) / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
		}
		return `strftime('%Y-%m-%dT%H:%M:%SZ', (` + us + `) / 1000000, 'unixepoch')`
	}
	perFault := func(of func(fault) string) string { // by the endpoint's number, as letters chooses
		text := "CASE WHEN endpoint = '" + Stuck + "' THEN " + of(faults[0]) + " ELSE CASE CAST(substr(endpoint, 10) AS INTEGER) / " + strconv.Itoa(failingEvery) + " % " + strconv.Itoa(len(faults))
		for i, f := range faults {
			text += " WHEN " + strconv.Itoa(i) + " THEN " + of(f)
		}
		return text + " END END"
	}
	kindNames := ""
	for i, k := range kinds {
		kindNames += fmt.Sprintf("WHEN %d THEN %s ", i, quote(k.name))
	}
	meta := `replace(replace(t.meta, '` + template + `' || d.endpoint, 'dlq_' || {pad i}), 'msg_` + template + `', 'msg_' || {pad i})`
	meta = `replace(` + meta + `, '` + keyOfAll + template + `', '` + keyOfAll + `' || CAST(i * 7919 % 50000 AS TEXT))`
	for i, offset := range []string{"start", "start + {after 1}", "start + {after 2}", "start + {after 3}"} {
		meta = "replace(" + meta + ", '{mark " + strconv.Itoa(i) + "}', " + "{stamp " + offset + "})"
	}
	pairs := []string{
		"{letter meta}", meta, "{progress}", perFault(func(f fault) string { return quote(f.progress()) }), "{error type}", perFault(func(f fault) string { return quote(f.errorType) }),
		"{status}", perFault(func(f fault) string { return strconv.Itoa(f.status) }), "{cause}", perFault(func(f fault) string { return quote(f.cause()) }),
		"{kinds}", kindNames, "{rare}", rare, "{template}", template, "{stuck id}", Stuck, "{by forbear}", string(webhook.ByForbear),
		"{counts of failures}", quote(counts(true)), "{counts}", quote(counts(false)), "{slot}", strconv.FormatInt(store.SlotOf(s.now), 10),
		"{n endpoints}", rows(s.Endpoints), "{n messages}", rows(s.Messages), "{n redrives}", rows(s.Redrives), "{n keys}", rows(10 * s.Held), "{n slots}", rows(17),
		"{failing}", fmt.Sprintf("i / %d %% %d * %d + %[3]d", ratio, max(s.Endpoints/failingEvery, 1), min(failingEvery, s.Endpoints)),
		"{accepted}", fmt.Sprintf("(%d + i * %d)", began, step.Microseconds()), "{began}", strconv.FormatInt(began, 10), "{now}", strconv.FormatInt(s.now.UnixMicro(), 10),
	}
	for word, n := range map[string]int{
		"base": int(base), "ratio": ratio, "messages": s.Messages, "endpoints": s.Endpoints, "redrives": s.Redrives, "held": s.Held, "stuck dead": s.StuckDead, "stuck all": s.StuckDead + s.StuckWaiting,
	} {
		pairs = append(pairs, "{"+word+"}", strconv.Itoa(n))
	}
	for i, at := range marks {
		pairs = append(pairs, fmt.Sprintf("{mark %d}", i), at.Format(time.RFC3339))
	}
	for i, after := range []string{"1", "2", "3", "c.i"} { // of the attempts: all is over within a minute
		pairs = append(pairs, "{after "+after+"}", [...]string{"1000000", "8000000", "45000000", "CASE c.i WHEN 1 THEN 1000000 WHEN 2 THEN 8000000 ELSE 45000000 END"}[i])
	}
	replacer := strings.NewReplacer(pairs...)
	return func(text string) string {
		text = replacer.Replace(replacer.Replace(replacer.Replace(text)))
		text = call(text, "{pad ", func(of string) string { return "substr(CAST(100000000 + " + of + " AS TEXT), 2)" })
		return call(text, "{stamp ", stamp)
	}
}

// call replaces each call of a function, "{name argument}".
func call(text, name string, f func(string) string) string {
	for {
		before, rest, found := strings.Cut(text, name)
		if !found {
			return text
		}
		of, after, _ := strings.Cut(rest, "}")
		text = before + f(of) + after
	}
}

// quote makes a literal of SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
