//go:build !unix

package listen

// listening reports whether a descriptor is a socket that listens: none is where
// sockets are not passed.
func listening(uintptr) bool { return false }
