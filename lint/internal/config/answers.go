package config

import "slices"

// answers are those that analyzers tell apart: the first six statuses and the
// first five codes are final by the standard, the others are not.
var answers = []string{
	"400", "401", "403", "404", "409", "422", "429", "503",
	"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNIMPLEMENTED", "UNAUTHENTICATED", "UNAVAILABLE",
}

// Answers returns the answers that analyzers tell apart: statuses and names of
// gRPC codes. Only these can be retryable or final by the settings.
func Answers() []string { return slices.Clone(answers) }
