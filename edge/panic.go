package edge

import (
	"fmt"
	"runtime/debug"

	"github.com/forbear-go/forbear"
)

// PanicError is the error of durable work whose operation panicked, as
// [DurableCall.Try] returns it. Its text names the type of the value alone: the
// value may hold anything, and errors are logged. Package deadletter keeps value and
// stack, redacted. The zero value is a panic of nil without a stack.
type PanicError struct {
	Value any
	Stack []byte // as debug.Stack writes it
}

// panicked is the final error of an operation that panicked with v. It is called
// while the panic's frames are still on the stack.
func panicked(v any) error { return forbear.Terminal(&PanicError{Value: v, Stack: debug.Stack()}) }

// Error returns "panicked: TYPE".
func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %T", e.Value) }
