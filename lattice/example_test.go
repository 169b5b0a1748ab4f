package lattice_test

import (
	"context"
	"fmt"

	"github.com/forbear-go/forbear"
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

// Calls of an SDK whose client cannot be changed, and whose own retries are off.
func ExampleUtility() {
	retryer := forbear.Must(forbear.New("lattice", lattice.Policy(), forbear.WithoutLog()))
	ctx, id := context.Background(), "track-1"
	var sdk struct{ Entities entities } // stands for a client of a Lattice SDK
	utility := lattice.NewUtility(retryer, nil, nil)
	err := utility.Do(ctx, func(ctx context.Context) error { return sdk.Entities.Get(ctx, id) })
	fmt.Println(err)
	// Output: <nil>
}

type entities struct{}

func (entities) Get(context.Context, string) error { return nil }
