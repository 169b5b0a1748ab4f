package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// OldSecret is a signing secret, of an endpoint or of an application, that was rotated.
type OldSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

// SigningStill returns those of a list that sign at a time.
func SigningStill(list []OldSecret, now time.Time) (still []OldSecret) {
	for _, old := range list {
		if now.Before(old.Until) {
			still = append(still, old)
		}
	}
	return still
}

// IsRef reports whether s refers to a secret instead of being one. References may
// be stored, shown and logged; secrets may be stored.
func IsRef(s string) bool { return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:") }

// maskSecrets masks a list of secrets and leaves references as they are.
func maskSecrets(list []string) []string {
	masked := make([]string, len(list))
	for i, s := range list {
		masked[i] = maskSecret(s)
	}
	return masked
}

// maskSecret masks a secret and leaves a reference as it is.
func maskSecret(s string) string {
	if s == "" || IsRef(s) {
		return s
	}
	return deadletter.Masked
}

// maskOld masks a list of old secrets, which are not references.
func maskOld(list []OldSecret) []OldSecret {
	list = slices.Clone(list)
	for i := range list {
		list[i].Secret = deadletter.Masked
	}
	return list
}

// maskedSecrets names the secrets of a list that are placeholders.
func maskedSecrets(list []string) (fields []string) {
	for i, s := range list {
		if s == deadletter.Masked {
			fields = append(fields, fmt.Sprintf("secrets[%d]", i))
		}
	}
	return fields
}
