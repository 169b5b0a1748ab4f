package cli

import (
	"bufio"
	"flag"
	"fmt"
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

// Confirm asks whether something that cannot be undone is meant, and reports whether the
// answer was yes.
func Confirm(std *Streams, question string) bool {
	fmt.Fprintf(std.Err, "%s This cannot be undone. Type yes: ", Printable(question))
	if std.In == nil {
		return false
	}
	line, _ := bufio.NewReader(std.In).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
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

// ActorFlag registers --actor, the name for the audit. It is by default that of the
// user, which the flag overrides, since on a shared account it says nothing. Help
// does not show it: a manual is made on one machine and read on another.
func ActorFlag(f *flag.FlagSet, name *string, usage string) {
	*name = "unknown"
	if u, err := user.Current(); err == nil {
		*name = u.Username
	}
	f.Func("actor", usage+" (default: the user's)", func(v string) error {
		*name = v
		return nil
	})
}
