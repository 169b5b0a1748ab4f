package sqlstore

// place is the state of a delivery that comes behind all others of its key: it
// is held while one of them is not finished. The transaction holds the key's
// lock.
func (t *tx) place(endpoint, key string) (rowState, error) {
	var one int
	busy, err := t.row([]any{&one}, `SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND `+stateUnfinished+` LIMIT 1`, endpoint, key)
	if busy {
		return held, err
	}
	return waiting, err
}

// promote lets the next message of each key go, whose locks the transaction
// holds. The states are written twice for SQLite, which takes a partial index only
// for its own words.
func (t *tx) promote(keys []ordering) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := t.exec(`UPDATE forbear_deliveries SET `+stateWaiting+` WHERE id IN (
		SELECT (SELECT min(h.id) FROM forbear_deliveries h WHERE h.endpoint = x.e AND h.okey = x.k AND h.`+stateUnfinished+` AND h.`+stateHeld+`)
		FROM {keys} WHERE NOT EXISTS (SELECT 1 FROM forbear_deliveries a WHERE a.endpoint = x.e AND a.okey = x.k AND a.`+stateActive+`))`, asJSON{keys})
	return err
}
