// Package edge is for those who write an edge: a transport, an interceptor, a
// consumer, a queue or a schedule that wants forbear's retries and keeps the call
// itself. Programs that only make calls need package forbear alone.
//
// A [Call] is live: it waits in its goroutine. A [DurableCall] waits elsewhere, in a
// database or in a queue, and its [Progress] is stored between attempts; webhooks, event
// consumers and batches are made of it. Both go through forbear.Retryer.Next, as
// forbear.Retryer.Do does: nothing here decides.
//
// Below it is what several edges share: hint joins the advice of one response, grpccode and
// grpcwire read what gRPC says, visit keeps a retry away from the address that has failed,
// metric measures once for all exporters, and partial is the suite that shows what
// callers get while a dependency fails in part.
package edge
