// Package pace lets out the sends to a dependency at the rate that it accepts.
//
// A dependency that limits its callers says so with 429, or with 503 and a Retry-After.
// Each of them is a failure for the circuit breaker, and stopping does not cure it:
// sending as fast as is accepted does. A [Pacer] learns that rate from how sends end,
// and gives each send, first attempts and retries, a turn. Until the first refusal it
// does nothing, at the cost of an atomic load, and a minute after the last one it does
// nothing again.
//
// # The rule
//
// The client rate limiter of the AWS SDKs ("adaptive" mode) falls to 0.7 of the rate
// that it has sent at and climbs back along a cubic curve. It was the first candidate and
// is played beside this one in httpretry's tests: it averages less than the limit by
// design, needs tens of seconds from 50 to 400 a second, and takes refusals that have
// nothing to do with its rate, such as those of one path, for a limit.
//
// The rule here measures what is accepted, and probes from just below:
//
//   - Time is cut into rounds of a quarter of a second. Only what was sent in a round
//     counts in it, so that a slow dependency is judged by its responses to this rate.
//   - When a round has more than 3 % refusals, the rate falls to the latest one that was
//     borne for a second, less 3 %, and at once after that to 0.98 of what was accepted in
//     the last second: many limits are windows of a second.
//   - When a round has fewer, the rate gives up half of their share: a client that stays
//     at the limit leaves nothing to another client of it.
//   - A second later, and twenty accepted sends for each refusal (sixty at most, and
//     none after three seconds in peace), it probes: up by 1 % (at 200 a second; the
//     step goes with the root of the rate, so that two clients of one limit come to
//     share it), then 2, 4, 8 % and so on, up to doubling with each round.
//   - Eight refusals in a row close the line: probes alone go out, one by one, first after
//     50 ms and then rarer as the wait that the dependency has asked for is longer. The
//     first success opens it.
//   - When sending less changes nothing about the share of refusals, up to 40 %, these have
//     nothing to do with the rate, and are borne: one tenant or one path that is always
//     refused must not slow down the others.
//
// A hint is not a rate: Retry-After is obeyed by the call that received it, in package
// forbear, and here it only makes the probes of a closed line rarer.
//
// # Waiting
//
// Calls wait in one line, the oldest first, within their own time; a thousand at most
// ([Pacer.MaxWaiting]). A call that would wait too long is refused at once and learns when a new
// call may come: while the rate is no more than a guess, in a second. Only the head of the
// line has a timer to watch: it is woken when turns come sooner, and wakes the next when it
// leaves.
//
//   - pacer.go: the turns.
//   - line.go: the calls that wait.
//   - learn.go: how sends ended, in rounds.
//   - rate.go: the rule.
//   - closing.go: when everything is refused.
//   - meter.go: the accepted rate.
package pace
