package sqlstore

import (
	"fmt"
	"strconv"
)

// rowState is a state as a table keeps it: a small number. In Go it is text, so
// that statements are put together from it when they are compiled. An argument
// would not do everywhere: a partial index is found only by a statement that
// has the number in its text, as the index has. The numbers are on disk and
// stay what they are.
type rowState string

// The states of a delivery. One that is held waits for an earlier message of
// its key.
const (
	waiting   rowState = "0"
	leased    rowState = "1"
	delivered rowState = "2"
	dead      rowState = "3"
	held      rowState = "4"
	canceled  rowState = "5"
)

// The states of an alert.
const (
	alertOpen    rowState = "0" // still gathering
	alertClaimed rowState = "1"
	alertSent    rowState = "2"
)

// The states of an idempotency record.
const (
	keyStarted   rowState = "1"
	keyCompleted rowState = "2"
	keyReleased  rowState = "3"
	keyHeld      rowState = "4"
)

// What statements say of a delivery's state, to set it or to ask for it. An
// alias of the table goes before.
const (
	stateWaiting   = `state = ` + string(waiting)
	stateLeased    = `state = ` + string(leased)
	stateDelivered = `state = ` + string(delivered)
	stateHeld      = `state = ` + string(held)
	stateFailed    = `state IN (` + string(dead) + `, ` + string(canceled) + `)` // as forbear_deliveries_failed has it
	stateDead      = stateFailed + ` AND state = ` + string(dead)
	stateCanceled  = stateFailed + ` AND state = ` + string(canceled)
	stateActive    = `state IN (` + string(waiting) + `, ` + string(leased) + `)` // as forbear_deliveries_active has it
	// stateUnreadable is as forbear_deliveries_unreadable has it: put off unread, and not
	// claimed since.
	stateUnreadable = stateWaiting + ` AND unreadable = fence`
	stateUnfinished = `state IN (` + string(waiting) + `, ` + string(leased) + `, ` + string(held) + `)`
)

// number is the state as an argument.
func (s rowState) number() int64 {
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		panic(err) // states are constants
	}
	return n
}

// Scan implements sql.Scanner.
func (s *rowState) Scan(v any) error {
	// Both drivers give small integers as int64.
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a state of type %T", v)
	}
	*s = rowState(strconv.FormatInt(n, 10))
	return nil
}
