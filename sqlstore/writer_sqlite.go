package sqlstore

import (
	"errors"
)

// unsynced makes SQLite commit without waiting for the disk, until the returned
// function is called. The next commit that waits covers those before it.
func (w *writer) unsynced() func(*error) {
	level := func(s string) error {
		_, err := w.tx.execOnce("PRAGMA synchronous = " + s)
		return err
	}
	if level("NORMAL") != nil {
		return func(*error) {}
	}
	return func(err *error) {
		if w.tx == nil {
			return // the connection is gone
		}
		if back := level("FULL"); back != nil { // never go on like this
			w.drop()
			*err = errors.Join(*err, back)
		}
	}
}

// alive reports whether the connection can begin a transaction.
func (w *writer) alive() bool {
	if _, err := w.tx.exec("BEGIN IMMEDIATE"); err != nil {
		return false
	}
	_, err := w.tx.exec("ROLLBACK")
	return err == nil
}
