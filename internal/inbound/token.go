package inbound

import (
	"errors"
	"strings"
)

// minToken is the shortest secret that lets callers in, in bytes. It refuses what can be
// guessed, and a placeholder.
const minToken = 16

var errToken = errors.New("a token has at least 16 characters: openssl rand -hex 32 makes one")

// Token returns the secret that callers are to bring, without the space around it, such
// as the last line feed of a file. One of space alone is an error, as is any that is
// short: either would open what it was set to close.
func Token(text string) (string, error) {
	token := strings.TrimSpace(text)
	if len(token) < minToken {
		return "", errToken
	}
	return token, nil
}
