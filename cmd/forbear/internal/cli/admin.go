package cli

import (
	"fmt"
	"os"
	"strings"
)

// EnvAdminToken holds the token of the admin endpoint.
const EnvAdminToken = "FORBEAR_ADMIN_TOKEN"

// AdminToken returns the bearer token of the admin endpoint, or "".
func AdminToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(EnvAdminToken), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return token, nil
}
