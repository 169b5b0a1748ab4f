package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// StartWithClock starts a server whose wall clock the test sets, also while it runs: set
// makes it so far ahead of the machine's, or behind. What the server measures otherwise is
// not changed. It is libfaketime that does this.
func StartWithClock(t testing.TB, settings ...string) (s *Server, set func(ahead time.Duration)) {
	t.Helper()
	s = Start(t, settings...)
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(found) == 0 {
		const install = "libfaketime is not installed: sudo apt-get install faketime"
		if os.Getenv("CI") == "true" {
			t.Fatal(install)
		}
		t.Skip("NOT RUN: " + install)
	}
	file := filepath.Join(s.dir, "clock")
	set = func(ahead time.Duration) {
		t.Helper()
		// In its place at once: the server reads it at any moment.
		err := os.WriteFile(file+".new", fmt.Appendf(nil, "%+d\n", int(ahead.Seconds())), 0o644)
		if err == nil {
			err = os.Rename(file+".new", file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	s.Halt(syscall.SIGINT)
	s.env = []string{"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1"}
	s.Boot(t)
	return s, set
}
