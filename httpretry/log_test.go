package httpretry_test

import (
	"io"
	"log"
)

// discardLog keeps a server's expected complaints out of the test's output.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
