package promretry_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/promretry"
)

// Count retries, and see whether they help.
func ExampleNew() {
	m := promretry.New(promretry.WithService("checkout"))
	reg := prometheus.NewRegistry()
	reg.MustRegister(m)
	payments, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(m.Observer()), forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := 0
	_ = payments.Do(context.Background(), func(context.Context) error {
		if calls++; calls == 1 {
			return forbear.Retryable(errors.New("connection lost"), forbear.Hint{NoBackoff: true})
		}
		return nil
	})
	families, err := reg.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "retry_success_after_retry_total" {
			_, _ = expfmt.MetricFamilyToText(os.Stdout, f)
		}
	}
	// Output:
	// # HELP retry_success_after_retry_total Calls that succeeded after a retry, by the earlier error.
	// # TYPE retry_success_after_retry_total counter
	// retry_success_after_retry_total{dependency="payments",error_type="retryable_error",service="checkout"} 1
}
