// Package check holds policy files against the retry standard: the gates of
// production readiness and of the architecture review.
//
// [Run] judges a set of files together, since some questions have no answer in
// one file alone: who owns the retries of a dependency, and what the retries of
// several layers multiply to. Each finding has a stable id, listed by [Rules].
//
// A finding does not count when a valid waiver lifts it. A waiver is valid when
// it is complete, lasts at most 180 days, has not expired, and when an approver
// who is not its owner has signed it: the payload of [Payload], signed by
// ssh-keygen -Y sign under [Namespace], or under [NamespaceIAB] for the
// architecture board, is verified against a file of allowed signers. That file
// says who may sign under which namespace, so that a role is not a claim of the
// waiver. What is wrong with a waiver is a finding itself.
//
// Experimental: what this package exports may change in any version.
package check
