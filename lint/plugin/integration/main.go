// Command integration is golangci-lint with forbear's plugin built in: what
// "golangci-lint custom" would build, without cloning its repository.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"

	_ "github.com/forbear-go/forbear/lint/plugin"
)

// A test of this package runs it.
func main() {
	if err := commands.Execute(commands.BuildInfo{GoVersion: "unknown", Version: "v2.15.0", Commit: "?", Date: ""}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}
