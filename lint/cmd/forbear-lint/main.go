// Command forbear-lint is forbear lint on its own, for those who want the
// linter without the rest of forbear.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/forbear-go/forbear/lint/driver"
)

// Policy files need forbear lint, which has their reader.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := driver.Main(ctx, nil, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
