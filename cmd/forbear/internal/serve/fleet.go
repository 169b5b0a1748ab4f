package serve

import (
	"errors"
	"flag"
	"log/slog"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/redisstore"
)

// fleet lets all gateways of a service share one retry budget for each
// dependency: with a budget each, 200 quiet gateways would have 200 floors
// of three retries. The zero value, without a store, leaves each its own.
type fleet struct {
	url     string
	store   *redisstore.Store
	budgets map[string]*budget.Fleet // by dependency
}

// register registers the flag that names the shared store.
func (f *fleet) register(set *flag.FlagSet) {
	set.StringVar(&f.url, "fleet-budget", "", "share the retry budgets of all processes of the service on this Redis or Valkey `url`, such as redis://127.0.0.1:6379/0")
}

// options returns what makes the Retryer of a dependency share its budget. The
// budget's key is the service and the dependency: two services that call one
// dependency do not share.
func (f *fleet) options(log *slog.Logger, service string, dep policyfile.Dependency) ([]forbear.Option, error) {
	if f.url == "" {
		return nil, nil
	}
	if f.store == nil {
		store, err := redisstore.Open(f.url)
		if err != nil {
			return nil, errors.New("--fleet-budget: not a redis:// or rediss:// URL") // the URL may hold a password
		}
		f.store = store
	}
	shared, err := budget.NewFleet(dep.Policy.Budget, f.store, service+"/"+dep.Name,
		budget.FleetOptions{Logger: log, Strict: dep.Policy.Strict})
	if err != nil {
		return nil, err
	}
	if old := f.budgets[dep.Name]; old != nil {
		// The policy was read anew. Calls of the old one that are still under
		// way go on with what this process has earned by itself.
		_ = old.Close()
	} else if f.budgets == nil {
		f.budgets = map[string]*budget.Fleet{}
	}
	f.budgets[dep.Name] = shared
	return []forbear.Option{forbear.WithBudget(shared)}, nil
}

// close gives back what this process holds of the budgets, so that the others
// need not wait for its lease to run out.
func (f *fleet) close() {
	for _, b := range f.budgets {
		_ = b.Close()
	}
	if f.store != nil {
		_ = f.store.Close()
	}
}
