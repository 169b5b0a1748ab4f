// Package forrst reads and writes the retry extension of the Forrst protocol,
// urn:forrst:ext:retry, and retries Forrst calls by it.
//
// A client puts [NewTransport] under its http.Client. Every request whose body
// is a Forrst envelope is then retried as the response's own envelope says: by
// its retry extension, by the older retryable boolean while the migration lasts
// ([Phase]), or else by the protocol's default for the error's code. The
// envelope is authoritative, not the HTTP status. Each retry has a new id, the
// same idempotency key, and more time when the deadline was the trouble; the
// response is handed over under the id that the caller sent.
//
//	r, err := forbear.New("billing", forbear.Policy{})
//	client := &http.Client{Transport: forrst.NewTransport(nil, r)}
//
// A server responds with [Refuse] or [WriteError], which add the extension, drop
// the boolean and keep Retry-After in step.
//
// The extension is specified in docs/forrst/extensions/retry.md.
package forrst
