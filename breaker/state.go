package breaker

// State is where a circuit breaker stands. The zero value is closed.
type State uint8

const (
	Closed State = iota
	Open
	HalfOpen
)

var stateNames = [...]string{"closed", "open", "half-open"}

// String returns "closed", "open" or "half-open".
func (b State) String() string { return stateNames[min(int(b), len(stateNames)-1)] }
