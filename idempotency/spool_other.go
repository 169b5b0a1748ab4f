//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package idempotency

import "os"

// lockFile does nothing: on this system each process needs a spool of its own.
func lockFile(*os.File) error { return nil }
