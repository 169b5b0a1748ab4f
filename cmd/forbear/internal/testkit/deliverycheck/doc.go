// Package deliverycheck checks durable delivery from outside. It makes random
// traffic whose ids collide on purpose, over HTTP and through the outbox table, by
// statements, by the library, by COPY and by forbear_send, against real processes that it kills; it receives what they send, and judges
// every offer by what the API responded, what arrived and which dead letters there
// are. It knows forbear's public face alone: the API, the outbox table and the
// requests that endpoints see.
//
// A run has four parts. [Traffic] makes the offers and writes down in a [Ledger]
// what was offered and what the response was. A [Fleet] runs the processes and
// kills them. A [Receiver] writes down what arrives. [Judge] compares the three,
// with the dead letters, and returns a [Report].
//
// These are the rules that it judges by:
//
//  1. A message is identified by its endpoint and its id together: the same id
//     at two endpoints is two messages, each with its own content.
//  2. The same endpoint and id with the same content is a duplicate: 200 with
//     "duplicate":true; a row of the outbox goes without a trace. With other
//     content it is refused: 409 with a problem; a row of the outbox becomes a
//     dead letter with the reason "conflict".
//  3. A call with several endpoints is accepted when it is new at one of them at
//     least and conflicts at none; it is a duplicate when it is one at all of
//     them; it is refused when it conflicts at any, and then adds nothing.
//  4. What was acknowledged arrives at its endpoint as it was offered. What was
//     refused or rolled back never does. Of one identity one content arrives. A
//     committed row arrives or is a dead letter, and not both. Nothing arrives
//     that was not offered there.
//  5. Each message arrives once; it may arrive again only when a process was
//     killed in between.
//  6. At an ordered endpoint the messages of one key that were offered one after
//     another through the same channel are sent in that order: the next one not
//     before the one before got its 2xx, and the one before never
//     again after that.
//  7. A row of the outbox that can never be sent becomes a dead letter with the
//     reason "invalid" and its payload, and holds no other row up.
//  8. The database saw no deadlock.
//
// Content is the body, type, source, subject, key, idempotency key, content type
// and headers.
package deliverycheck
