// Package queue keeps dead letters and acts on them: the interface [Store], redrives
// ([Redriver]), alerts ([Alerter]) and exports before letters are removed ([Retention]).
//
// A redrive ([Job]) sends letters on their way again with their id and key:
// chosen by a [Filter], counted beforehand, one canary first when asked for, at
// a rate, until too many fail.
//
// The stores are those of sqlstore and, in tests, storetest/memstore.
//
// Experimental: what this package exports may change in any version.
package queue
