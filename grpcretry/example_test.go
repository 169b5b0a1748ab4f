package grpcretry_test

import (
	"fmt"

	"github.com/forbear-go/forbear/grpcretry"
)

// An existing service config becomes a policy, with a report.
func ExampleImportServiceConfig() {
	imports, err := grpcretry.ImportServiceConfig([]byte(`{"methodConfig": [{
		"name": [{"service": "ledger.Ledger"}],
		"retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.2s", "maxBackoff": "5s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]
		}
	}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, im := range imports {
		fmt.Println(im.Methods, im.Policy.MaxRetries, im.Policy.Backoff.Base, im.Policy.Backoff.Cap)
		for _, f := range im.Findings {
			fmt.Println(f)
		}
	}
	// Output:
	// [/ledger.Ledger/*] 2 200ms 5s
	// retryPolicy: gRPC spreads its waits by 20 % only: forbear draws from the whole range (R-1)
	// retryPolicy.retryableStatusCodes: INTERNAL must not be retried: left out (R-4)
}
