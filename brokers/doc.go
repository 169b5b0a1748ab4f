// Package brokers is the root of the adapters that bring events from message
// brokers to package consume: natsconsume for NATS JetStream, kafkaconsume for
// Kafka, rabbitconsume for RabbitMQ, and watermillconsume, a middleware for
// whatever Watermill speaks to. Each package needs its own broker's client and
// no other.
//
// What an event is and what becomes of it is decided by consume; an adapter
// fetches, asks, and settles: it acknowledges what is done or lies in the
// dead-letter queue, and brings everything else back when it is due. All
// adapters that settle by themselves pass one conformance suite.
package brokers
