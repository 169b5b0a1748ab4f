package main

import (
	"context"

	"github.com/forbear-go/forbear/lint/driver"
)

// lintCommand hands everything to the driver, which has flags and help of its
// own: forbear-lint runs the same without the rest of forbear. What it lacks is
// the reader of policy files.
func lintCommand() *command {
	return &command{
		name:    "lint",
		summary: "find retry bugs in Go source",
		usage:   "[FLAGS] [PACKAGES]",
		run: func(ctx context.Context, std *streams, args []string) int {
			return driver.Main(ctx, lintPolicy, args, std.out, std.err)
		},
	}
}
