package faulttable

import (
	"flag"
	"io"
	"log"
	"os"
	"testing"
)

// TestMain lets more cases run at once than there are processors: most of their
// time they wait. net/http logs what servers send without being asked, which is
// part of a case.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}
