package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// Load is the worst case of one dependency: every attempt fails. Its JSON
// names are part of the report's format.
type Load struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Service    string `json:"service"`
	Dependency string `json:"dependency"`
	// Attempts is what one call sends without a budget.
	Attempts int `json:"attempts"`
	// Without and With are the sends for one call in an outage, without the
	// budget and with it. With holds for every client: one with a single request
	// in a window may spend the whole floor on it. Busy is that of a client with
	// so many requests that the budget's share is more than its floor.
	Without float64 `json:"amplification_without_budget"`
	With    float64 `json:"amplification"`
	Busy    float64 `json:"amplification_busy"`
	// PathWithout, PathWith and PathBusy multiply those of the layers above, along
	// Path, as if no layer knew of the other.
	Path        []string `json:"path"`
	PathWithout float64  `json:"path_amplification_without_budget"`
	PathWith    float64  `json:"path_amplification"`
	PathBusy    float64  `json:"path_amplification_busy"`
	// Duration is the longest that a call may take: what attempts and waits
	// come to, and never more than the total.
	Duration time.Duration `json:"duration_ns"`
	// Layers are the others that retry the same dependency, as "istio". Their
	// attempts are in the figures of the path, and not in the load's own.
	Layers []string `json:"layers,omitempty"`
	// AtLeast says that something on the path could not be judged or bounded: the
	// figures may be higher.
	AtLeast bool `json:"at_least,omitzero"`

	longer    bool // Duration is no upper bound
	byDefault bool // no time or count was written
	kind      forbear.Kind
	at        policyfile.Position
	around    reach // the factors of the other layers

	pathWithout []string // the worst one without budgets
}

// unbounded returns what all attempts of p and its longest waits come to,
// without regard to the total. Counts may be absurd here: they are findings
// of their own, and must not keep the loop below busy.
func unbounded(p *forbear.Policy) time.Duration {
	q := p.WithDefaults()
	attempts := attempts(p)
	sum := float64(attempts) * float64(q.AttemptTimeout())
	if steps := q.Backoff.Schedule; len(steps) > 0 {
		for _, step := range steps[:min(attempts, len(steps))] {
			sum += float64(step)
		}
		return saturated(sum + float64(max(attempts-len(steps), 0))*float64(steps[len(steps)-1]))
	}
	// After 64 doublings every wait has reached the cap: the rest is a
	// product.
	const grown = 64 // doublings, or triplings, beyond which every wait is the cap
	base, most := float64(q.Backoff.Base), float64(q.Backoff.Cap)
	factor, wait := 2.0, base
	if q.Backoff.Jitter == forbear.JitterDecorrelated {
		factor, wait = 3, 3*base
	}
	for range min(attempts-1, grown) {
		sum += min(wait, most)
		wait *= factor
	}
	return saturated(sum + float64(max(attempts-1-grown, 0))*most)
}

// attempts returns how often a call may be sent, the first attempt included.
// It is clamped so that an absurd count, a finding of its own, does not
// overflow.
func attempts(p *forbear.Policy) int { return min(max(p.Retries(), 0), math.MaxInt32) + 1 }

// saturated turns a sum of nanoseconds into a duration, or into the longest
// one.
func saturated(sum float64) time.Duration {
	if sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(sum))
}

// worst returns the Load of a dependency on its own. A limit that the reader
// refused is taken as missing, so that the figures show what the file asks
// for.
func worst(s Source, d *policyfile.Dependency) Load {
	p := d.Policy.WithDefaults()
	l := Load{
		File: s.File.Name, Line: d.At.Line, Service: cmp.Or(s.File.Service, s.File.Name), Dependency: d.Name,
		Attempts: attempts(&d.Policy), AtLeast: d.AtLeast, kind: d.Policy.Kind, at: d.At,
		around: reach{without: 1, with: 1, busy: 1},
	}
	l.byDefault = !anyWritten(d, "total", "per_attempt", "max_retries", "backoff.base", "backoff.cap", "backoff.schedule")
	// Only the owner retries: forbear in another service sends once.
	another := p.Owner != "" && s.File.Service != "" && p.Owner != s.File.Service
	if another {
		l.Attempts = 1
	}
	l.Without = float64(l.Attempts)
	// A budget bounds the load only where the reader has not refused it.
	l.With, l.Busy = l.Without, l.Without
	if !refuses(s, d, "budget") {
		l.With = p.Budget.Worst(l.Attempts - 1)
		l.Busy = min(l.Without, p.Budget.MaxAmplification())
	}
	if l.Duration = unbounded(&d.Policy); another {
		l.Duration = p.AttemptTimeout()
	}
	// Without a bound for one attempt it may take as long as the call.
	if slices.Contains(d.Lacks, "per_attempt") {
		l.Duration = math.MaxInt64
	}
	l.longer = slices.Contains(d.Lacks, "backoff.cap") // whoever is called chooses a wait
	switch bounded := !refuses(s, d, "total.missing"); {
	case d.Longest > 0:
		l.Duration, l.longer = d.Longest, d.AtLeast && !bounded
	case bounded && s.File.Format != "" && d.Policy.Total == 0:
		l.Duration = math.MaxInt64 // our defaults are not those of other software
	case bounded:
		l.Duration, l.longer = min(p.Total, l.Duration), false
	default:
		l.longer = l.longer || d.AtLeast
	}
	return l
}

// graph computes the loads of all dependencies along all paths, and
// judges them against the limits. It needs all files at once: three layers
// with three attempts each send 27 requests, and no single file shows that.
func (r *run) graph(units []*unit) []Load {
	// Only a service whose own file is here can be compared with its callers.
	longest := map[string][]*Load{}
	for _, u := range units {
		// Durable calls go on after the caller has left by design.
		if u.source.File.Service != "" && !u.load.kind.Durable() {
			longest[u.load.Service] = append(longest[u.load.Service], u.load)
		}
	}
	for _, below := range longest {
		slices.SortStableFunc(below, func(a, b *Load) int { return cmp.Compare(b.Duration, a.Duration) })
	}
	for _, u := range units {
		r.givesUpFirst(u.dep, longest[u.dep.Target()])
	}
	// Calls are looked up by the called service, because the walk goes upwards.
	g := &walker{into: map[string][]*Load{}, done: map[string]reach{}, known: map[string]bool{}}
	for _, u := range units {
		g.into[u.dep.Target()] = append(g.into[u.dep.Target()], u.load)
	}
	out := make([]Load, 0, len(units))
	for _, u := range units {
		l := u.load
		// The dependency's own factor comes on top of the worst path to
		// its caller.
		up := g.reach(l.Service, nil)
		to := up.through(l, l.Dependency)
		l.Path, l.pathWithout = to.path, to.pathWithout
		l.PathWithout, l.PathWith, l.PathBusy = to.without, to.with, to.busy
		l.AtLeast = to.open
		r.limits(l)
		out = append(out, *l)
	}
	for _, c := range g.circles {
		r.add(callCycle.at(c.call.at, c.call.Dependency, "services call each other in a circle: %s", strings.Join(c.path, " -> ")).keyed(strings.Join(c.path, " ")))
	}
	return out
}

// limits judges one path against the limits of the run. The tiny margin
// forgives the rounding of multiplied budgets. What has no bound is over any limit.
func (r *run) limits(l *Load) {
	path := strings.Join(l.Path, " -> ")
	switch {
	case r.MaxAmplification <= 0:
	case l.PathWith > r.MaxAmplification+1e-9:
		r.add(amplificationLimit.at(l.at, l.Dependency, "an outage of %s multiplies its load by %s%s along %s: the limit is %s",
			l.Dependency, atLeast(l.AtLeast), number(l.PathWith), path, number(r.MaxAmplification)).degree(l.PathWith))
	case l.AtLeast:
		r.add(amplificationLimit.at(l.at, l.Dependency, "an outage of %s multiplies its load by %s%s along %s, part of which could not be judged: the limit is %s",
			l.Dependency, atLeast(true), number(l.PathWith), path, number(r.MaxAmplification)))
	}
	if r.MaxDuration > 0 && !l.kind.Durable() && (l.longer || l.Duration > r.MaxDuration) {
		r.add(durationLimit.at(l.at, l.Dependency, "a call to %s may take %s: the limit is %v", l.Dependency, l.duration(), r.MaxDuration).degree(l.Duration.Seconds()))
	}
}

// duration is the longest call in words.
func (l *Load) duration() string {
	if l.Duration == math.MaxInt64 {
		return "unbounded"
	}
	return atLeast(l.longer) + l.Duration.String()
}

// atLeast stands before a figure that is no upper bound.
func atLeast(open bool) string {
	if open {
		return ">= "
	}
	return ""
}

// givesUpFirst compares an attempt on a service, whose own file is among the
// sources, with the longest of that service's own calls. A caller that gives
// up first leaves the work below running for no one, and asks for it again.
func (r *run) givesUpFirst(d *policyfile.Dependency, callees []*Load) {
	if d.Policy.Kind.Durable() || slices.Contains(d.Lacks, "per_attempt") {
		return
	}
	attempt := d.Policy.AttemptTimeout()
	// They come with the longest first, which speaks for the others.
	longer := slices.IndexFunc(callees, func(l *Load) bool { return l.Duration <= attempt })
	if longer < 0 {
		longer = len(callees)
	}
	if longer == 0 {
		return
	}
	at, ok := d.Place("per_attempt")
	if !ok {
		at = d.At
	}
	l, others := callees[0], ""
	// The standard's own defaults in a row are no mistake of these files: 5 s an attempt,
	// and 30 s a call.
	if l.byDefault && !anyWritten(d, "total", "per_attempt") {
		return
	}
	if longer > 1 {
		others = fmt.Sprintf(", and %s for less", plural(longer-1, "other"))
	}
	r.add(callerGivesUpFirst.at(at, d.Name, "an attempt on %s ends after %v, but %s may keep calling %s for %s%s",
		d.Name, attempt, l.Service, l.Dependency, l.duration(), others).keyed(l.Dependency))
}

// anyWritten reports whether one of the fields was written for a dependency.
func anyWritten(d *policyfile.Dependency, fields ...string) bool {
	return slices.ContainsFunc(fields, func(field string) bool {
		_, ok := d.Place(field)
		return ok
	})
}

// walker follows calls upwards. done keeps the result for each service,
// without which a graph of many layers would take exponential time.
type walker struct {
	into    map[string][]*Load // calls, by the service that is called
	done    map[string]reach
	circles []circle
	known   map[string]bool // of them, by their paths
}

// circle is a path that ends where it began, with one of its calls to report.
type circle struct {
	call *Load
	path []string
}

// reach is the worst load that arrives at a service for one call at the
// outermost service.
type reach struct {
	without, with, busy float64
	// path is the worst with budgets, and pathWithout the worst without.
	path, pathWithout []string
	// open says that a part of a path has no bound, or none that is known.
	open bool
}

// through returns the load that arrives behind a call, at a service of that name.
func (up reach) through(l *Load, name string) reach {
	return reach{
		without: up.without * l.Without * l.around.without, with: up.with * l.With * l.around.with, busy: up.busy * l.Busy * l.around.busy,
		path: append(slices.Clone(up.path), name), pathWithout: append(slices.Clone(up.pathWithout), name),
		open: up.open || l.AtLeast,
	}
}

// reach returns the worst path down to a service. below holds the services
// between it and the start of the walk: meeting one of them again is a
// circle, whose load has no bound and is left out.
func (g *walker) reach(service string, below []string) reach {
	if known, ok := g.done[service]; ok {
		return known
	}
	best := reach{without: 1, with: 1, busy: 1, path: []string{service}, pathWithout: []string{service}}
	below = append(below, service)
	for _, l := range g.into[service] {
		if i := slices.Index(below, l.Service); i >= 0 {
			g.circle(l, below[i:])
			best.open = true
			continue
		}
		up := g.reach(l.Service, below)
		// All maxima are kept: the worst path with budgets may differ
		// from that without.
		to := up.through(l, service)
		best.busy, best.open = max(best.busy, to.busy), best.open || to.open
		if to.with > best.with {
			best.with, best.path = to.with, to.path
		}
		if to.without > best.without {
			best.without, best.pathWithout = to.without, to.pathWithout
		}
	}
	g.done[service] = best
	return best
}

// circle records a circle once, wherever the walk entered it: it is turned
// so that its smallest name comes first.
func (g *walker) circle(l *Load, below []string) {
	path := slices.Clone(below)
	slices.Reverse(path)
	first := slices.Index(path, slices.Min(path))
	path = append(slices.Clone(path[first:]), path[:first]...)
	path = append(path, path[0])
	key := strings.Join(path, "\x00")
	if g.known[key] {
		return
	}
	g.known[key] = true
	g.circles = append(g.circles, circle{l, path})
}

// owners looks for dependencies with more than one owner, over all files.
// The first file names the owner, and later ones are held against it: none
// of them is known to be right.
func (r *run) owners() {
	type claim struct {
		owner string
		at    policyfile.Position
	}
	first := map[string]claim{}
	for _, s := range r.sources {
		for _, d := range s.File.All() {
			if d.Policy.Owner == "" {
				continue
			}
			at, _ := d.Place("owner")
			c, known := first[d.Target()]
			if !known {
				first[d.Target()] = claim{d.Policy.Owner, at}
				continue
			}
			if c.owner != d.Policy.Owner {
				r.add(twoOwners.at(at, d.Name, "the retry owner of %s is %s here, but %s at %s", d.Name, d.Policy.Owner, c.owner, c.at).keyed(c.owner))
			}
		}
	}
}
