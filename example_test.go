package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// Fixed draws stand for chance, so that the outputs are the same each time.
func middle() float64 { return 0.5 }

func ExampleRetryer_Do() {
	r, err := forbear.New("inventory", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	err = r.Do(context.Background(), func(context.Context) error {
		if attempts++; attempts == 1 {
			// The mark says that it may go away; this server names its own wait.
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 10 * time.Millisecond, NoBackoff: true})
		}
		return forbear.Terminal(errors.New("no such article"))
	})
	fmt.Println(attempts, "attempts")
	fmt.Println(errors.Is(err, forbear.ErrTerminal), err.(*forbear.Error).Err)
	// Output:
	// 2 attempts
	// true no such article
}

func ExampleDoValue() {
	r := forbear.Must(forbear.New("inventory", forbear.Policy{}, forbear.WithoutLog()))
	attempts := 0
	stock, err := forbear.DoValue(context.Background(), r, func(context.Context) (int, error) {
		if attempts++; attempts < 3 {
			return 0, forbear.Retryable(errors.New("busy"), forbear.Hint{NoBackoff: true})
		}
		return 42, nil
	})
	fmt.Println(stock, err)
	// Output: 42 <nil>
}

// A policy outside the standard is refused, with every fault at once.
func ExampleNew() {
	_, err := forbear.New("payments", forbear.Policy{
		MaxRetries: 9,
		Total:      time.Minute,
		Budget:     budget.Policy{Ratio: 0.5},
	})
	fmt.Println(err)
	// Output:
	// policy "payments": max_retries 9 is outside 1-5 (R-2)
	// policy "payments": total 1m0s is over 30s for kind sync (R-3)
	// policy "payments": budget.ratio 50% is over 20% (R-7)
}

// Decide asks what would happen, without a clock, a budget or a wait.
func ExampleDecide() {
	var p forbear.Policy
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	say := func(d forbear.Decision) {
		fmt.Println(d.Retry, d.Reason, d.Reason.Rule(), d.Floor, d.Wait, d.Ceiling)
	}
	unavailable := forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}
	say(forbear.Decide(&p, forbear.State{Attempt: 2}, unavailable, now, middle))

	// A POST without an idempotency key must not be sent again.
	say(forbear.Decide(&p, forbear.State{NeedsKey: true}, unavailable, now, middle))

	// A server that asks for 45 s does not fit into a call of 30 s.
	throttled := forbear.Failure{Class: forbear.ClassThrottled, Type: "http_429", Hint: forbear.Hint{Floor: 45 * time.Second}}
	say(forbear.Decide(&p, forbear.State{}, throttled, now, middle))
	// Output:
	// true retryable R-4 0s 1s 2s
	// false no_idempotency_key R-6 0s 0s 0s
	// false after_exceeds_deadline R-5 0s 0s 0s
}

// A Set keeps one Retryer, and so one budget, for each dependency.
func ExampleSet() {
	set, err := forbear.NewSet("checkout", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := set.Configure("search", forbear.Policy{MaxRetries: 1}); err != nil {
		fmt.Println(err)
		return
	}
	for _, dependency := range []string{"payments", "search"} {
		r := set.Retryer(dependency)
		fmt.Println(r.Dependency(), r.Policy().MaxRetries)
	}
	// Output:
	// payments 3
	// search 1
}

// One call may take fewer retries than the policy gives, none included.
func ExampleWithMaxRetries() {
	r := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))
	attempts := 0
	err := r.Do(forbear.WithMaxRetries(context.Background(), 0), func(context.Context) error {
		attempts++
		return forbear.Retryable(errors.New("busy"), forbear.Hint{})
	})
	fmt.Println(attempts, errors.Is(err, forbear.ErrExhausted))
	// Output: 1 true
}
