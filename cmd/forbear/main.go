// Command forbear puts retries that know when to stop in front of services, and
// answers questions about them. See forbear help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands lists the subcommands in the order in which help shows them.
func commands() []*command {
	return []*command{
		serveCommand(),
		explainCommand(),
		forrstCommand(),
		checkCommand(),
		rulesCommand(),
		policyCommand(),
		initCommand(),
		simCommand(),
		lintCommand(),
		topCommand(),
		dlqCommand(),
		keysCommand(),
		migrateCommand(),
		versionCommand(),
		helpCommand(),
	}
}
