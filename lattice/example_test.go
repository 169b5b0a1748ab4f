package lattice_test

import (
	"fmt"

	"github.com/forbear-go/forbear/lattice"
)

// How often a failing request is sent when two layers retry.
func ExampleAmplification() {
	for _, setting := range []string{"", "client WithoutRetries()", "WithMaxAttempts(1)"} {
		requests, layered, err := lattice.Amplification("go", setting, 3)
		fmt.Printf("%q: %d requests, layered %v, %v\n", setting, requests, layered, err)
	}
	// Output:
	// "": 6 requests, layered true, <nil>
	// "client WithoutRetries()": 6 requests, layered true, <nil>
	// "WithMaxAttempts(1)": 3 requests, layered false, <nil>
}
