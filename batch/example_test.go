package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
)

func ExampleRun() {
	retryer := forbear.Must(forbear.New("mail", forbear.Policy{Kind: forbear.Batch}, forbear.WithoutLog()))
	report, err := batch.Run(context.Background(), retryer, slices.Values([]string{"ann", "bob", ""}), func(_ context.Context, to string) error {
		if to == "" {
			return forbear.Terminal(errors.New("no address"))
		}
		return nil
	}, batch.Options[string]{})
	fmt.Println(report.Done, "done,", report.Failed, "failed:", report.Reasons)
	fmt.Println(err)
	// Output:
	// 2 done, 1 failed: map[terminal:1]
	// items failed: 1
}
