// Command forbear puts retries that know when to stop in front of services, and
// answers questions about them. See forbear help.
package main

import (
	"context"
	"log"
	"os"
	"syscall"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
	"github.com/forbear-go/forbear/httpretry"
)

func main() {
	log.SetOutput(httpretry.RedactLog(os.Stderr)) // net/http prints what servers say out of turn
	ctx, stop := cli.WithSignals(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := commands.Program().Run(ctx, &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}
