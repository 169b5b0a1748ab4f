// Package console serves four pages to those who are on call: what retries are doing
// now, the messages, the dead letters, and the idempotency keys whose outcome is unknown.
//
// It is a client of the admin API and of the delivery API, with the rights of the token
// that its reader has signed in with. Pages are written on the server and work without a
// script; with one, they are live and keep their place when something fails. They are at
// the root of a host: a proxy that puts a path before theirs is not supported.
//
//   - console.go: what it is made of, its addresses, and the way of a request
//   - session.go, signin.go: who is signed in
//   - client.go: calls of the two APIs
//   - view.go, funcs.go: how a page, a part of it and its JSON are written
//   - live.go: figures that change while a page is open
//   - a file for each page, with its templates of the same name
package console
