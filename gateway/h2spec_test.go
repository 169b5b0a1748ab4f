//go:build h2spec

package gateway_test

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// TestH2spec holds both listeners against h2spec, whose path is in the environment
// variable H2SPEC. What fails fails with net/http alone as well:
//
//   - A header that HTTP/2 does not have gets a 400, where h2spec wants a reset.
//   - In clear the port speaks HTTP/1.1 too, and says 400 to what is no preface.
//   - SETTINGS_MAX_FRAME_SIZE is above what h2spec takes for it.
//   - Several values of one setting in a frame end the connection, as a flood would.
func TestH2spec(t *testing.T) {
	known := []string{
		"Sends a HEADERS frame that contains the connection-specific header field",
		`Sends a HEADERS frame that contains the TE header field with any value other than "trailers"`,
		"Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE",
		"Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE",
		"Sends invalid connection preface",
	}
	ca := certtest.NewCA(t, "ca")
	settings := pairIn(t, t.TempDir(), ca.Issue("127.0.0.1", nil))
	for name, address := range map[string]string{"TLS": serveOn(t, &settings, echoProto), "clear": serveOn(t, nil, echoProto)} {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"-h", host, "-p", port, "-o", "2"}
		if name == "TLS" {
			args = append(args, "-t", "-k")
		}
		out, _ := exec.CommandContext(t.Context(), os.Getenv("H2SPEC"), args...).CombinedOutput()
		if !strings.Contains(string(out), "tests, ") {
			t.Fatalf("%s: h2spec did not run: %s", name, out)
		}
		for line := range strings.Lines(string(out)) {
			_, test, failed := strings.Cut(line, "× ")
			if _, test, _ = strings.Cut(strings.TrimSpace(test), ": "); failed && !slices.Contains(known, test) {
				t.Errorf("%s: %s", name, test)
			}
			if strings.Contains(line, "tests, ") {
				t.Logf("%s: %s", name, line)
			}
		}
	}
}
