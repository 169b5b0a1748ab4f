package sqlstore

import (
	"context"

	"github.com/forbear-go/forbear/webhook/store"
)

// Rows of the outbox for an application that is suspended are put aside, where others
// do not wait behind them. They come back with their ids when it is not: they are
// moved before all that was inserted since, so that keys keep their order.

// asideTenants hops from tenant to tenant of what is aside.
const asideTenants = `WITH RECURSIVE h (tenant) AS (
		SELECT min(tenant) FROM forbear_outbox_aside
		UNION ALL
		SELECT (SELECT min(x.tenant) FROM forbear_outbox_aside x WHERE x.tenant > h.tenant) FROM h WHERE h.tenant IS NOT NULL)
	SELECT tenant FROM h WHERE tenant IS NOT NULL`

// lifted are those of them that are suspended no more.
const lifted = asideTenants + ` AND NOT EXISTS (SELECT 1 FROM forbear_applications a WHERE a.id = h.tenant AND a.suspended IS NOT NULL)`

// tenantOf is the application of a row o of the outbox.
const tenantOf = `COALESCE(NULLIF(o.application, ''), (SELECT e.application FROM forbear_endpoints e WHERE e.id = o.endpoint), '')`

// comesBack reports whether there is something aside that comes back.
func (w *Webhooks) comesBack(ctx context.Context) (bool, error) {
	list, err := readAll(ctx, w.db, one[string], lifted+` LIMIT 1`)
	return len(list) > 0, err
}

// readmit brings back what was put aside for applications that are suspended no more, up
// to limit rows of each: at least as many as are moved next. It returns the tenants of
// what is still aside. The transaction has the relay's lock.
func (t *tx) readmit(limit int) (rest []string, err error) {
	back, err := collect(t, one[string], lifted)
	if err != nil {
		return nil, err
	}
	for _, tenant := range back {
		ids, err := collect(t, one[int64], `SELECT id FROM forbear_outbox_aside WHERE tenant = ? ORDER BY id LIMIT ?`, tenant, limit)
		if err != nil {
			return nil, err
		}
		for _, text := range []string{
			`INSERT INTO forbear_outbox (` + outboxColumns + `) SELECT ` + outboxColumns + ` FROM forbear_outbox_aside WHERE tenant = ? AND id IN ({ids})`,
			`DELETE FROM forbear_outbox_aside WHERE tenant = ? AND id IN ({ids})`,
		} {
			if _, err := t.exec(text, tenant, asJSON{ids}); err != nil {
				return nil, err
			}
		}
	}
	return collect(t, one[string], asideTenants)
}

// behind marks the rows of tenants of which something is aside: they are behind that.
func (t *tx) behind(list []*outboxRow, tenants []string) error {
	if len(tenants) == 0 {
		return nil
	}
	ids := make([]int64, len(list))
	rows := make(map[int64]*outboxRow, len(list))
	for i, o := range list {
		ids[i], rows[o.id] = o.id, o
	}
	those, err := collect(t, one[int64], `SELECT o.id FROM forbear_outbox o WHERE o.id IN ({ids}) AND `+tenantOf+` IN (SELECT value FROM {texts} x)`, asJSON{ids}, asJSON{tenants})
	for _, id := range those {
		rows[id].aside = rows[id].bad == nil
	}
	return err
}

// putAside takes a row out of the way, until its application is suspended no more.
func (t *tx) putAside(o *outboxRow) error {
	_, err := t.exec(`INSERT INTO forbear_outbox_aside (tenant, `+outboxColumns+`) SELECT `+tenantOf+`, `+outboxColumns+` FROM forbear_outbox o WHERE o.id = ?`, o.id)
	return err
}

// outboxAside counts the rows of the outbox that were put aside, at most so
// many.
func (w *Webhooks) outboxAside(ctx context.Context, most int, s *store.OutboxStats) error {
	list, err := readAll(ctx, w.db, one[int], `SELECT count(*) FROM (SELECT 1 FROM forbear_outbox_aside LIMIT ?) x`, most)
	if err == nil {
		s.Aside = list[0]
	}
	return err
}
