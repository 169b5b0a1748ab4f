// Package policyfile reads retry policies from YAML, for the library, the
// gateway and the tools alike.
//
//	version: 1
//	service: checkout
//
//	profiles:
//	  patient:
//	    extends: cautious
//	    total: 20s
//
//	dependencies:
//	  payments:
//	    url: https://payments.internal/v1
//	    extends: patient
//	    owner: checkout
//	    max_retries: 2
//	    backoff: {base: 200ms, cap: 5s}
//	    budget: {ratio: 10%, window: 60s}
//	    breaker: {failure_rate: 50%, open_for: 30s}
//	    health: {min_success: 50%, endpoint: https://payments.internal/health/ready}
//	    max_concurrent: 64
//	    idempotency: reuse
//	  search:
//	    url: http://search.internal
//	    max_retries: 7
//
//	waivers:
//	  - rule: R-2
//	    dependency: search
//	    reason: approved by the architecture board, case 118
//	    expires: 2027-06-30
//
//	gateway:
//	  listen: 127.0.0.1:8080
//	  routes:
//	    - prefix: /payments
//	      dependency: payments
//	      idempotency: on
//	    - host: search.local
//	      dependency: search
//
// The version is that of the format, 1 when it is left out. A file of another one is
// refused with that fault alone.
//
// A dependency starts from the standard's defaults, or from the profile that it
// extends: one of the file, or the built-in standard, cautious or lattice.
//
// The reader is strict. Unknown and repeated keys, values of the wrong form and
// policies outside the standard are faults, and one run reports all of them,
// each with its line and column. Zero never means "none" by accident: a field
// that is written as 0 is a fault that names the field to use instead.
//
// Input is bounded: 4 MiB, and aliases may not multiply it beyond measure.
package policyfile
