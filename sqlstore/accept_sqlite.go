package sqlstore

// accept adds the messages of one call on SQLite, one by one.
func (t *tx) accept(a *acceptance) error {
	added := false
	for i := range a.rows {
		m := &a.rows[i]
		seq, err := t.addMessage(m)
		if err != nil {
			return err
		}
		for _, e := range m.Endpoints {
			fresh, err := t.addDelivery(seq, e, m, a.orders(m, e))
			if err != nil {
				return err
			}
			if m.fresh = m.fresh || fresh; fresh {
				continue
			}
			known, err := t.known(m.ID, e, false)
			if err != nil {
				return err
			}
			if a.refused == nil && !m.SameContent(&known.Message) {
				a.refused = conflict(m.ID, e)
			}
		}
		if added = added || m.fresh; m.fresh {
			continue
		}
		if _, err := t.exec(`DELETE FROM forbear_messages WHERE seq = ?`, seq); err != nil {
			return err
		}
	}
	return a.undo(added)
}
