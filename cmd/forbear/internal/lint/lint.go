// Package lint is the command lint: forbear's linter, with the reader of policy
// files that the linter's own module does without.
package lint

import (
	"context"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/lint/driver"
)

// Command returns the command lint. It hands everything to the driver, which has
// flags and help of its own: forbear-lint runs the same without the rest of
// forbear. What forbear-lint lacks is the reader of policy files. It reads source
// code only, and runs none of it.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "lint",
		Summary:  "find retry bugs in Go source",
		Usage:    "[FLAGS] [PACKAGES]",
		About:    driver.About,
		Examples: driver.Examples,
		Run: func(ctx context.Context, std *cli.Streams, args []string) int {
			if std.Described(driver.Flags(readPolicy)) {
				return cli.ExitOK
			}
			return driver.Main(ctx, readPolicy, args, std.Out, std.Err)
		},
	}
}
