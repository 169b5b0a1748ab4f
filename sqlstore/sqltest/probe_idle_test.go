package sqltest

import (
	"os"
	"testing"
)

// A probe of an idle file that is well does not write all the time.
func TestProbesOfAnIdleFileWriteLittle(t *testing.T) {
	place := file(t)
	db := open(t, place)
	size := func() int64 {
		t.Helper()
		if err := db.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(place + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	first := size()
	for range 20 {
		if now := size(); now != first {
			t.Fatalf("the log grew from %d to %d bytes", first, now)
		}
	}
}
