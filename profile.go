package forbear

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear/budget"
)

// Profile returns the named policy, ready to be adjusted:
//
//   - "standard": the zero Policy.
//   - "cautious": a budget of 10 % over 60 s, after the SRE book and the
//     budget article.
//   - "lattice": the vendor's lists of retryable statuses and codes, with full
//     jitter and the standard's counts. It retries 404 and 409, which R-4
//     forbids by default.
func Profile(name string) (Policy, error) {
	switch name {
	case "", "standard":
		return Policy{}, nil
	case "cautious":
		return Policy{Budget: budget.Policy{Ratio: 0.10, Window: time.Minute}}, nil
	case "lattice":
		return Policy{Classify: latticeClasses()}, nil
	}
	return Policy{}, fmt.Errorf("unknown profile %q: want standard, cautious or lattice", name)
}

// latticeClasses holds the rows of the vendor's guide that differ from R-4.
func latticeClasses() map[string]Class {
	return map[string]Class{
		"http_404":       ClassTransient, // not visible yet
		"http_409":       ClassTransient, // concurrent write
		"http_5xx":       ClassTransient,
		"grpc_INTERNAL":  ClassTransient,
		"grpc_UNKNOWN":   ClassTransient,
		"grpc_NOT_FOUND": ClassTransient,
	}
}
