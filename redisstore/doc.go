// Package redisstore keeps retry budgets and idempotency records on Redis or
// Valkey.
//
// With a [Store], all instances of a service share one budget:
//
//	store, err := redisstore.Open("redis://127.0.0.1:6379/0")
//	budget, err := budget.NewFleet(budget.Policy{}, store, "checkout/payments", budget.FleetOptions{})
//	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithBudget(budget))
//
// Calls never wait for Redis: see [budget.Fleet]. Each instance reports four
// times a second, by a script of one round trip. A budget takes three keys
// of a few kilobytes, which expire by themselves; nothing needs persistence.
// Where the server evicts keys under memory pressure, a budget that loses
// one begins anew and learns the present window from its instances.
//
// With an [Idempotency], they share the records of idempotency keys:
//
//	store, err := redisstore.OpenIdempotency(ctx, "redis://127.0.0.1:6379/1", redisstore.IdempotencyOptions{})
//	handler, err := idempotency.Handler(store, idempotency.Options{Scope: principalOf, Production: true}, mux)
//
// A request waits for two round trips, the claim and the completion. This needs
// a server that neither evicts nor forgets: maxmemory-policy noeviction and
// appendonly yes. Even so it is not for money: see [Idempotency].
//
// Experimental: what this package exports may change in any version.
package redisstore
