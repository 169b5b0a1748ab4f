// Package idempotency makes idempotency keys and honors them on the
// receiving side: a request that comes twice is done once, and both get the
// same response.
//
// [Handler] is the middleware. For each key of a principal a [Store] has one
// record, which is absent, started under a lease, completed, released, or held
// because no one knows what happened:
//
//	absent -> started -> completed    2xx, 3xx, final 4xx: duplicates get it
//	             |---> released       5xx, 401, 409, 429, panic: the next one runs
//	             '---> held           the outcome is unknown: no one runs
//
// A duplicate of a run under way waits for its response, for a bounded time, and
// then gets 409 of the problem type that ends in "/in-progress", with
// Retry-After. Another request under a known key gets 422. When the store is
// down the response is 503: nothing runs unprotected. The end of a run that the
// store cannot take waits in a [Backlog], from which duplicates get it.
//
// What is promised: within the retention, an operation is not begun while
// another run of it is alive by its lease, and never again after it was
// completed. A process that dies in the middle leaves a record whose outcome is
// unknown; it is held for an operator ([Store.List], [Store.Resolve]) unless
// [Options.Rerun] says that the operation may be repeated. Only
// [Options.Transaction] is exact, for what the handler writes through [Tx].
//
// Bodies of more than 16 KiB share 96 MiB of memory while they arrive. One principal takes
// at most four fifths of it, and the fuller it is, the less each may take. A request that
// finds no room within 10 s gets 503.
//
// Experimental: what this package exports may change in any version.
package idempotency
