// Package commands lists the commands of forbear.
package commands

import (
	"github.com/forbear-go/forbear/cmd/forbear/internal/api"
	"github.com/forbear-go/forbear/cmd/forbear/internal/check"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/dlq"
	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/cmd/forbear/internal/health"
	"github.com/forbear-go/forbear/cmd/forbear/internal/initialize"
	"github.com/forbear-go/forbear/cmd/forbear/internal/keys"
	"github.com/forbear-go/forbear/cmd/forbear/internal/lint"
	"github.com/forbear-go/forbear/cmd/forbear/internal/listen"
	"github.com/forbear-go/forbear/cmd/forbear/internal/maintain"
	"github.com/forbear-go/forbear/cmd/forbear/internal/messages"
	"github.com/forbear-go/forbear/cmd/forbear/internal/migrate"
	"github.com/forbear-go/forbear/cmd/forbear/internal/policy"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe"
	"github.com/forbear-go/forbear/cmd/forbear/internal/serve"
	"github.com/forbear-go/forbear/cmd/forbear/internal/sim"
	"github.com/forbear-go/forbear/cmd/forbear/internal/token"
	"github.com/forbear-go/forbear/cmd/forbear/internal/top"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
)

// Program returns the commands in the order in which help shows them.
func Program() cli.Program {
	return cli.NewProgram(
		serve.Command(),
		explain.Command(),
		check.Command(),
		check.RulesCommand(),
		policy.Command(),
		initialize.Command(),
		sim.Command(),
		probe.Command(),
		lint.Command(),
		top.Command(),
		health.Command(),
		listen.Command(),
		messages.Command(),
		api.Endpoints(),
		api.Applications(),
		dlq.Command(),
		keys.Command(),
		token.Command(),
		migrate.Command(),
		maintain.Command(),
		version.Command(),
	)
}
