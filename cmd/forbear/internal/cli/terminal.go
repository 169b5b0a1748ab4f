package cli

import (
	"io"
	"os"
	"os/user"
	"strings"
	"unicode"
)

// Terminal reports whether w is one.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Printable makes a name from elsewhere safe for a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// Actor returns the name of the user, for the audit.
func Actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
