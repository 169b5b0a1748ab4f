package main

import (
	"fmt"
	"slices"
	"strings"
)

// ours are the set-ups with forbear.
var ours = []string{"httpretry", "grpcretry", "forbear-gateway"}

// sums says how many of the clients do what, without ours.
func sums(list []*report) string {
	list = slices.DeleteFunc(slices.Clone(list), func(r *report) bool { return slices.Contains(ours, r.name) })
	count := func(is func(r *report) bool) (n int) {
		for _, r := range list {
			if is(r) {
				n++
			}
		}
		return n
	}
	retry := count(func(r *report) bool { return r.retries() > "0" })
	return strings.ReplaceAll(fmt.Sprintf(`- Of %d set-ups of clients without forbear, %d retry in an outage. Of these, %d use full jitter, and %d do not wait at all.
- %d try an expired certificate more than once.
- %d send a 'POST' without an idempotency key again.
- %d fail at once when 'Retry-After', or a pushback of gRPC, is 100 seconds; %d sit it out, and %d come earlier.
`,
		len(list), retry,
		count(func(r *report) bool { return r.Law != nil && r.Law.Law.Name == "full jitter" }),
		count(func(r *report) bool { return r.Law != nil && r.Law.Law.Name == "no wait" }),
		count(func(r *report) bool { return r.outcome("R-9/expired") == "fails" && r.expired() > "1" }),
		count(func(r *report) bool { return len(r.posts()) > 0 }),
		count(func(r *report) bool { return r.heeds() == "fails at once" }),
		count(func(r *report) bool { return r.heeds() == "waits" }),
		count(func(r *report) bool { return r.heeds() == "ignored" })), "'", "`")
}
