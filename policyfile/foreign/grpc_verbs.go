package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// gRPC's methods have no verb that says whether they may be repeated; their names begin
// with one by custom. reads change nothing. replaces lead to the same state when they
// are done twice, as PUT and DELETE do. writes do something once more each time, or
// change a part, as POST and PATCH do.
var (
	reads = []string{
		"Get", "List", "Watch", "Search", "Read", "Fetch", "Query", "Count", "Lookup", "Find", "Check", "Describe", "Show", "Test", "Ping",
		"Validate", "Exists", "Has", "Is", "Download", "Export", "Resolve", "Discover", "Explain", "Estimate", "Preview", "Subscribe", "Listen",
	}
	replaces = []string{"Put", "Set", "Delete", "Remove", "Replace", "Upsert", "Overwrite", "Clear", "Unset", "Revoke", "Cancel", "Acknowledge"}
	writes   = []string{
		"Create", "Add", "Append", "Insert", "Update", "Patch", "Modify", "Post", "Charge", "Send", "Publish", "Transfer", "Pay", "Refund",
		"Capture", "Submit", "Place", "Enqueue", "Push", "Increment", "Decrement", "Withdraw", "Deposit", "Debit", "Credit", "Purchase",
		"Buy", "Book", "Reserve", "Write", "Mutate", "Notify", "Emit", "Issue", "Invite",
	}
	// manners say how a method does what the next word says.
	manners = []string{"Batch", "Bulk", "Multi", "Mass", "Stream", "Streaming", "Async"}
)

// grpcVerb returns the first word of a method's name that says what it does.
func grpcVerb(method string) string {
	for {
		end := 1
		for end < len(method) && (method[end] < 'A' || method[end] > 'Z') && method[end] != '_' {
			end++
		}
		word := method[:min(end, len(method))]
		if word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		if end >= len(method) || !slices.Contains(manners, word) {
			return word
		}
		method = strings.TrimLeft(method[end:], "_")
	}
}

// grpcWrites judges whether a call may be repeated. What the retryable codes are
// makes no difference: even UNAVAILABLE may come after the request was processed.
func (r *reader) grpcWrites(d *policyfile.Dependency, name grpcName, at policyfile.Position) {
	verb := grpcVerb(name.method)
	switch {
	case name.method == "":
		what := "every method of " + name.service
		if name.service == "" {
			what = "every method of every service"
		}
		r.unjudged(at, d.Name, "%s is retried: whether its writes may be repeated (R-6) is unknown here", what)
	case slices.Contains(writes, verb):
		r.refuse(at, "R-6", d, "methods", "a method that writes is retried without an idempotency key: it may be done twice")
	case !slices.Contains(reads, verb) && !slices.Contains(replaces, verb):
		r.unjudged(at, d.Name, "%s: the name %s does not show whether the method writes and may be repeated (R-6)", d.Name, name.method)
	}
}
