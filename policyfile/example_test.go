package policyfile_test

import (
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

func ExampleParse() {
	f, err := policyfile.Parse("policy.yaml", []byte(`
service: checkout
dependencies:
  payments:
    max_retries: 2
    backoff: {base: 200ms}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range f.Dependencies {
		r, err := forbear.New(d.Name, d.Policy, f.Options()...)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Dependency(), r.Policy().MaxRetries, r.Policy().Backoff.Base, r.Policy().Backoff.Cap)
	}
	// Output: payments 2 200ms 30s
}

// All faults of a file come at once, each with its place and its rule.
func ExampleError() {
	_, err := policyfile.Parse("policy.yaml", []byte(`
dependencies:
  payments:
    max_retires: 2
    total: 45s
    backoff: {jitter: equal}
`))
	fmt.Println(err)
	// Output:
	// policy.yaml:4:5: unknown key "max_retires" in dependency payments: did you mean max_retries?
	// policy.yaml:5:12: payments: total 45s is over 30s for kind sync (R-3)
	// policy.yaml:6:23: backoff.jitter equal is forbidden: want full or decorrelated (R-1)
}

func ExampleParsePolicy() {
	cautious, err := forbear.Profile("cautious")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policyfile.ParsePolicy("override", []byte(`{"max_retries": 1}`), cautious)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.MaxRetries, p.Budget.Ratio, p.Budget.Window)
	// Output: 1 0.1 1m0s
}
