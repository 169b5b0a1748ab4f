//go:build !unix

package listen

import (
	"errors"
	"os"
	"syscall"
)

// listening reports whether a descriptor is a socket that listens: none is where
// sockets are not passed.
func listening(uintptr) bool { return false }

// duplicate says that it cannot be done here.
func duplicate(syscall.Conn, string) (*os.File, error) { return nil, errors.ErrUnsupported }
