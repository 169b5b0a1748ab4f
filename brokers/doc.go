// Package brokers is the root of the adapters that bring events from message
// brokers to package consume: natsconsume for NATS JetStream, kafkaconsume for
// Kafka, rabbitconsume for RabbitMQ, and watermillconsume, a middleware for
// whatever Watermill speaks to. Each package needs its own broker's client and
// no other.
//
// Package consume decides what an event is and what happens to it. An
// adapter fetches, asks, and writes the decision back to its broker: it
// acknowledges what is done or dead-lettered, and brings everything else
// back when it is due. All adapters that do this themselves pass one
// conformance suite. Those of NATS, Kafka and RabbitMQ also publish dead letters
// to a topic of their broker: see Topic of consume.Options.
//
// Experimental: what this package exports may change in any version.
package brokers
