package cli

import (
	"io"
	"os"
	"os/user"
	"strings"
	"unicode"
)

// Terminal reports whether w is one. Progress, colour and text that is rewritten
// in place are for terminals alone: in a file or a pipe they are noise.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Printable makes a name from elsewhere safe for a terminal: without control
// characters it can neither clear the screen nor pose as a line of the command.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// Actor returns the name of the user, for the audit. It is a default that a flag
// overrides: on a shared account it says nothing.
func Actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
