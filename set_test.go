package forbear_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear"
)

func TestSet(t *testing.T) {
	set, err := forbear.NewSet("shop", forbear.Policy{MaxRetries: 2}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Configure("search", forbear.Policy{MaxRetries: 1}); err != nil {
		t.Fatal(err)
	}
	for dependency, want := range map[string]int{"search": 1, "payments": 2, "": 2} {
		if got := set.Retryer(dependency).Policy().MaxRetries; got != want {
			t.Errorf("%q: %d retries, want %d", dependency, got, want)
		}
	}
	payments := set.Retryer("payments")
	if again := set.Retryer("payments"); again != payments {
		t.Error("one dependency has two Retryers, so two budgets")
	}
	if payments == set.Retryer("search") {
		t.Error("two dependencies share a Retryer")
	}
	if got := set.Retryer("").Dependency(); got != "default" {
		t.Errorf("the dependency without a name is %q", got)
	}
}

func TestSetRefusesBadPolicies(t *testing.T) {
	_, err := forbear.NewSet("shop", forbear.Policy{MaxRetries: 9})
	if !errors.Is(err, forbear.ErrPolicy) || !strings.HasPrefix(err.Error(), `set "shop": `) {
		t.Errorf("fallback: got %v", err)
	}
	set, err := forbear.NewSet("shop", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Configure("search", forbear.Policy{MaxRetries: 9}); !errors.Is(err, forbear.ErrPolicy) {
		t.Errorf("Configure: got %v", err)
	}
	if got := set.Retryer("search").Policy().MaxRetries; got != 3 {
		t.Errorf("a refused policy left %d retries, want the fallback's 3", got)
	}
}

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	set, err := forbear.NewSet("shop", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	got := make([]*forbear.Retryer, 64)
	for i := range got {
		wg.Go(func() { got[i] = set.Retryer("payments") })
	}
	wg.Wait()
	for _, r := range got {
		if r != got[0] {
			t.Fatal("two Retryers for one dependency")
		}
	}
}

func TestMust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	forbear.Must(forbear.New("payments", forbear.Policy{MaxRetries: 9}))
}
