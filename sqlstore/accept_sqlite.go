package sqlstore

// acceptAll adds call by call and row by row. No statement crosses a network,
// so that there is nothing to gain from fewer of them.
func (sqlite) acceptAll(t *tx, calls []*acceptance) error {
	for _, a := range calls {
		added := false
		for i := range a.rows {
			if err := a.add(t, &a.rows[i]); err != nil {
				return err
			}
			added = added || a.rows[i].fresh
		}
		if err := a.undo(added); err != nil {
			return err
		}
	}
	return nil
}

// add adds a message with its deliveries. The message goes first, for the
// deliveries need its number, and is taken back when it is new nowhere.
func (a *acceptance) add(t *tx, m *encoded) error {
	seq, err := t.addMessage(m)
	if err != nil {
		return err
	}
	for _, e := range m.Endpoints {
		fresh, err := t.addDelivery(seq, e, m, a.orders(m, e))
		if err == nil && !fresh {
			err = a.compare(t, m, e)
		}
		if err != nil {
			return err
		}
		m.fresh = m.fresh || fresh
	}
	// No delivery names it: it would stay for good.
	if !m.fresh {
		_, err = t.exec(`DELETE FROM forbear_messages WHERE seq = ?`, seq)
	}
	return err
}
