package lattice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/grpccode"
)

// Policy returns the policy for calls to Lattice: the vendor's lists of
// retryable statuses and codes with full jitter, base 1 s, cap 30 s and the
// standard's counts and budget. It is [forbear.Profile] "lattice".
func Policy() forbear.Policy {
	p, err := forbear.Profile("lattice")
	if err != nil {
		panic("lattice: the profile lattice is missing: " + err.Error()) // a fault of this module
	}
	return p
}

// ClassifyCode turns a gRPC status code, as google.golang.org/grpc/codes
// numbers them, into a failure, for those who do not use the module grpcretry.
// err is what the call returned; a certificate in it rules. Do not pass errors
// that are not a gRPC status: they are not retried.
func ClassifyCode(code uint32, err error) forbear.Failure {
	if f, ok := edge.ClassifyNet(err); ok && f.Class == forbear.ClassCertificate {
		return f
	}
	return forbear.Failure{Class: grpccode.Class(code), Type: grpccode.Label(code), Err: err}
}

// ErrSetting is what errors about settings of an SDK match.
var ErrSetting = errors.New("unknown setting of an SDK")

// SDKAttempts returns how many times the SDK of a language sends a request that
// always gets a retryable status, under the named setting of its
// retries: "WithMaxAttempts(1)", "WithoutRetries()" (on the call) and "client
// WithoutRetries()" for go, "max_retries: 0" for python, "maxRetries: 0" for
// javascript, "maxRetries(0)" for java. An empty setting is the default.
func SDKAttempts(language, setting string) (int, error) {
	switch language {
	case "go":
		return goAttempts(setting)
	case "python", "javascript", "typescript", "java":
	default:
		return 0, fmt.Errorf("%w: language %q", ErrSetting, language)
	}
	if setting == "" {
		return 3, nil
	}
	n, ok := number(setting)
	if !ok {
		return 0, fmt.Errorf("%w: %q", ErrSetting, setting)
	}
	return n + 1, nil
}

// goAttempts knows the Go SDK's peculiarities: its number is one of attempts,
// of which 0 means the default, and WithoutRetries has no effect on a client.
func goAttempts(setting string) (int, error) {
	const byDefault = 2
	name, onClient := strings.CutPrefix(setting, "client ")
	switch {
	case setting == "":
		return byDefault, nil
	case strings.Contains(name, "WithoutRetries"):
		if onClient {
			return byDefault, nil
		}
		return 1, nil
	case strings.Contains(name, "WithMaxAttempts"):
		if n, ok := number(name); ok {
			if n == 0 {
				n = byDefault
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrSetting, setting)
}

// number returns the first number in a setting.
func number(s string) (int, bool) {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 || i > 0 && s[i-1] == '-' {
		return 0, false
	}
	end := i
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[i:end])
	return n, err == nil && n < 1000
}

// Amplification returns how many requests reach Lattice when every response is
// retryable and a utility above the SDK makes that many attempts; layered says
// that both retry.
func Amplification(language, setting string, utilityAttempts int) (requests int, layered bool, err error) {
	n, err := SDKAttempts(language, setting)
	if err != nil {
		return 0, false, err
	}
	return n * utilityAttempts, n > 1 && utilityAttempts > 1, nil
}
