// Package webhook holds what users, stores and receivers of webhooks speak of:
// messages and endpoints, deliveries with their progress and their attempts, the
// [Store] that keeps them, the signatures that receivers verify, and the outbox
// row that an application writes in its own transaction.
//
// It starts nothing and sends nothing: package webhook/dispatch delivers.
//
// A message that was accepted is delivered at least once, or becomes a dead
// letter with an alert. Receivers see the same webhook-id in every attempt,
// which is what they recognise duplicates by; see [Verify].
//
// Experimental: what this package exports may change in any version.
package webhook
