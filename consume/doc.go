// Package consume processes events once: it drops duplicates, retries what may
// succeed later, and puts what cannot be done into a dead-letter queue.
// It knows no broker: [Consumer.Consume] takes an [Event] and returns a
// [Decision], which an adapter maps to the acknowledgement of its broker.
// [CloudEvents] is the adapter for HTTP; module brokers has those for NATS,
// Kafka, RabbitMQ and Watermill.
//
// An event is known by consumer group, source and id. Its record is that of
// package idempotency, in the same stores: it is started under a lease before
// the handler runs and completed after it, never before, so that an event
// whose handler failed or died is not lost as a "duplicate". Handlers run at
// least once: one that dies between its work and the end of it runs again,
// under a higher fence. With [Options.Transaction] what a handler writes through [Tx]
// is committed together with the end of the event, and so happens exactly once.
//
// An event's progress is in that store too: the number of its attempts, the time of the
// first, and a retry that the budget has postponed. Brokers need not keep it, and a
// restart forgets nothing.
//
// An unrecognised error is not retried: the handler marks with
// [forbear.Retryable] what may succeed later. Each consumer has one
// [forbear.Retryer], and so one budget and one breaker, for the dependency
// that its handler works on.
//
// A dead letter has the event as it came, with all its headers; of those that
// carry credentials, such as Authorization and Cookie, it has the name only
// . [Consumer.Redrive] runs it again.
//
// Experimental: what this package exports may change in any version.
package consume
