package foreign

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// sidekiqRetries is Sidekiq's default ("Error Handling", "Automatic job retry"): it
// spreads over some 20 days.
const sidekiqRetries = 25

// sidekiqKeys are those of which any file of Sidekiq's has one, and othersKeys those
// of another program with such queues, Shoryuken.
var (
	sidekiqKeys = []string{"max_retries", "concurrency", "queues"}
	othersKeys  = []string{"aws", "delay", "groups"}
)

// claimsSidekiq knows a sidekiq.yml by its keys, which Ruby's symbols give away. In
// plain writing they are words that any program may use: then the file says in its
// name whose it is.
func claimsSidekiq(n *tree.Node) bool {
	found := false
	for _, key := range sidekiqKeys {
		v, plain := n.Get(":"+key), n.Get(key)
		if v == nil && plain != nil && strings.Contains(strings.ToLower(filepath.Base(n.At.File)), "sidekiq") {
			v = plain
		}
		found = found || v != nil && (v.Kind == tree.List) == (key == "queues")
	}
	return found && !slices.ContainsFunc(othersKeys, func(key string) bool { return symbol(n, key) != nil })
}

// ownSidekiq returns what is Sidekiq's: its settings, and the parts of environments.
func ownSidekiq(n *tree.Node) (own []*tree.Node) {
	for _, p := range n.Pairs {
		if slices.Contains(sidekiqKeys, strings.TrimPrefix(p.Key, ":")) || p.Value.Map() && (claimsSidekiq(p.Value) || symbol(p.Value, "max_retries") != nil) {
			own = append(own, p.Value)
		}
	}
	return own
}

// symbol returns the value of a key, which may be written as Ruby's symbol.
func symbol(n *tree.Node, key string) *tree.Node { return n.Get(":"+key, key) }

// sidekiq reads what holds for all jobs. The part of an environment is laid over the
// rest, so that it is a unit of its own where it has another limit.
func (r *reader) sidekiq() {
	for _, part := range r.parts {
		root := part.Root
		limit, over := symbol(root, "max_retries"), 0
		for _, p := range root.Pairs {
			if v := symbol(p.Value, "max_retries"); p.Value.Map() && v != nil {
				r.sidekiqJobs(root.At, strings.TrimPrefix(p.Key, ":"), v)
				over++
			}
		}
		if limit != nil || over == 0 {
			r.sidekiqJobs(root.At, "", limit)
		}
	}
}

// sidekiqJobs judges one limit. Retries are spread by a formula of the fourth power
// with a little chance added; only Ruby code can say otherwise.
func (r *reader) sidekiqJobs(at policyfile.Position, environment string, limit *tree.Node) {
	name := "jobs of Sidekiq"
	if environment != "" {
		name += " in " + environment
	}
	d := work(name, "", at)
	if limit == nil {
		retries(&d, sidekiqRetries, at)
		r.refuse(at, "R-2", &d, "max_retries", "no :max_retries bounds its jobs: where a job does not say otherwise, Sidekiq retries it %d times", sidekiqRetries)
	} else if n, ok := count(limit); ok {
		retries(&d, n, limit.At)
	} else {
		r.open(limit.At, &d, "max_retries %q is no number: how often jobs are retried is not known", limit.Text())
	}
	if d.Policy.Disabled {
		r.quiet(at)
		return
	}
	d.Policy.Total = wait(&d, sidekiqWait)
	if place, written := d.Place("max_retries"); written {
		d.SetPlace("total", place)
	}
	if d.Policy.Total <= day {
		d.Policy.Total = 0
		r.cannot(&d, "R-3", "total.missing", "sidekiq.yml cannot bound for how long a job is tried: retry_for does, in the code of the job")
	}
	unbounded(&d)
	r.cannot(&d, "R-1", "", "Sidekiq waits for 15s and the fourth power of the number of retries, with a little chance on top: that is not full jitter")
	r.again(&d, "Sidekiq", "a job")
	if limit == nil {
		r.add(d, "max_retries")
	} else {
		r.add(d)
	}
}

// sidekiqWait is the longest wait before a retry: count**4 + 15 seconds, and up to 10
// for each retry so far.
func sidekiqWait(retry int) time.Duration {
	n := float64(retry)
	return saturated(n*n*n*n+15+10*(n+1), time.Second)
}
