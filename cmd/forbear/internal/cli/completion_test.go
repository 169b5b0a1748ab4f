package cli_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

func TestChoices(t *testing.T) {
	for usage, want := range map[string]string{
		"closed, open or half-open":                                          "closed open half-open",
		"output format: `text or json`":                                      "text json",
		"output `format[:file]`: text, json or sarif; may be repeated":       "text json sarif",
		"the least `severity`: error, warning or note (default error)":       "error warning note",
		"what the files are: forbear or grpc (default: by their contents)":   "forbear grpc",
		"for export: the `software` to write for: istio, grpc, resilience4j": "istio grpc resilience4j",
		"sweep, least: longest fault (default 20s, 1m)":                      "",
		"an SQLite `file` or a postgres:// URL":                              "",
		"an `address`: HOST:PORT, unix:PATH, systemd: or systemd:NAME":       "",
		"a dependency, as `name=url` or name; may be repeated":               "",
		"letters from this `time` on: RFC 3339, or an age such as 24h":       "",
		"run what would need more than 2 GiB or 10 minutes":                  "",
		"": "",
	} {
		if got := cli.Choices(&flag.Flag{Usage: usage}); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: got %q, want %q", usage, got, want)
		}
	}
}
