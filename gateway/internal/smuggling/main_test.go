package smuggling

import (
	"flag"
	"io"
	"log"
	"os"
	"testing"
)

// TestMain lets more probes run at once than there are processors: most of their
// time they wait. net/http logs what an upstream sends without being asked.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}
