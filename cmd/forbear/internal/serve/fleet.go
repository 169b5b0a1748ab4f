package serve

import (
	"cmp"
	"errors"
	"flag"
	"log/slog"
	"os"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/redisstore"
)

// fleet lets all gateways of a service share one retry budget for each
// dependency: with a budget each, 200 quiet gateways would have 200 floors
// of three retries. The zero value, without a store, leaves each its own.
type fleet struct {
	url   string
	store *redisstore.Store
}

// envFleetBudget is the variable with the URL of the shared store. The URL may hold a
// password, which on a command line every user of the machine reads.
const envFleetBudget = "FORBEAR_FLEET_BUDGET"

// register registers the flag that names the shared store. The variable is not the default
// of the flag: help would print it.
func (f *fleet) register(set *flag.FlagSet) {
	set.StringVar(&f.url, "fleet-budget", "", "share retry budgets between processes through this Redis or Valkey `url` (also from "+envFleetBudget+")")
}

// budget returns a new budget of a dependency that the processes share, nil where
// they do not. Its key is the service and the dependency: two services that call one
// dependency do not share.
func (f *fleet) budget(log *slog.Logger, service string, dep policyfile.Dependency) (*budget.Fleet, error) {
	url := cmp.Or(f.url, os.Getenv(envFleetBudget))
	if url == "" {
		return nil, nil
	}
	if f.store == nil {
		store, err := redisstore.Open(url)
		if err != nil {
			return nil, errors.New("--fleet-budget or " + envFleetBudget + ": want a redis:// or rediss:// URL") // the URL may hold a password
		}
		f.store = store
	}
	return budget.NewFleet(dep.Policy.Budget, f.store, service+"/"+dep.Name,
		budget.FleetOptions{Logger: log, Strict: dep.Policy.Strict})
}

// close closes the connection to the store, after the budgets.
func (f *fleet) close() {
	if f.store != nil {
		_ = f.store.Close()
	}
}
