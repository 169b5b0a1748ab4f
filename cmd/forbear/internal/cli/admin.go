package cli

import (
	"fmt"
	"os"

	"github.com/forbear-go/forbear/internal/inbound"
)

// EnvAdminToken is the variable with the token of the admin endpoint. A token has
// no flag of its own: every user of a machine can read the arguments of its
// processes.
const EnvAdminToken = "FORBEAR_ADMIN_TOKEN"

// EnvMetricsToken is the variable with a token that opens /metrics alone.
const EnvMetricsToken = "FORBEAR_METRICS_TOKEN"

// EnvAPIToken is the variable with the token of the delivery API.
const EnvAPIToken = "FORBEAR_API_TOKEN"

// APIToken returns the bearer token of the delivery API, as AdminToken does. Serve
// demands it and the commands that call the API bring it.
func APIToken(file string) (string, error) { return token(file, EnvAPIToken) }

// AdminToken returns the bearer token of the admin endpoint, from the file or
// else from the environment, or "". Serve demands it and top brings it.
func AdminToken(file string) (string, error) { return token(file, EnvAdminToken) }

// MetricsToken returns the bearer token of /metrics, likewise.
func MetricsToken(file string) (string, error) { return token(file, EnvMetricsToken) }

// token reads a token, which is not one that can be guessed: [inbound.Token]. A file that
// is empty is a fault: it would switch the demand off unnoticed.
func token(file, variable string) (string, error) {
	text, from := os.Getenv(variable), variable
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		text, from = string(b), file
	} else if text == "" {
		return "", nil
	}
	token, err := inbound.Token(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return token, nil
}
