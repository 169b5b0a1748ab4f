// Package redisstore keeps retry budgets on Redis or Valkey, so that all
// instances of a service share one:
//
//	store, err := redisstore.Open("redis://127.0.0.1:6379/0")
//	budget, err := forbear.NewFleetBudget(forbear.BudgetPolicy{}, store, "checkout/payments", forbear.FleetOptions{})
//	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithBudget(budget))
//
// Calls never wait for Redis: see [forbear.FleetBudget]. Each instance settles
// four times a second by a script of one round trip. A budget takes three keys
// of a few kilobytes, which expire by themselves; nothing needs persistence.
// Where the server evicts keys under memory pressure, a budget that loses one
// begins anew and is told the present window by its instances.
package redisstore
