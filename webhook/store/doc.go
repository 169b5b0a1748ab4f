// Package store is what a dispatcher of webhooks asks of its database: the interface
// [Store], the deliveries that are claimed and written back, and what operators see of
// messages.
//
// A program that sends webhooks needs package webhook alone. The stores are sqlstore and,
// in tests, storetest/memstore; another one has to pass storetest.Run.
//
// Experimental: what this package exports may change in any version.
package store
