// Package webhook holds what users and receivers of webhooks say: messages, endpoints and
// applications, the signatures that receivers verify, and the outbox row that an
// application writes in its own transaction.
//
// It starts nothing and sends nothing: package webhook/dispatch delivers, and package
// webhook/store is what it asks of a database.
//
// A message that was accepted is delivered at least once, or becomes a dead
// letter with an alert. Receivers see the same webhook-id in every attempt,
// which is what they recognise duplicates by; see [Verify].
//
// Experimental: what this package exports may change in any version.
package webhook
