package foreign

import (
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springRetry is a section of settings for Spring's RetryTemplate. The keys are those of
// Spring Boot, unless others are named.
type springRetry struct {
	name    string
	kind    forbear.Kind
	at      *tree.Node
	s       scope
	profile string

	count, first, factor, most string // keys
	attempts                   int    // the first included
	initial, max               time.Duration
	multiplier                 float64
}

// springTemplate reads such a section. One without growth has the same wait each time;
// none of them has jitter, unless random says so.
func (r *reader) springTemplate(t springRetry, random bool) {
	d := policyfile.Dependency{Name: t.name, Route: t.profile, At: t.at.At}
	d.Policy.Kind = t.kind
	// Spring Boot 4 counts retries, under a name of its own.
	count, def, lower := t.s.get("max-retries"), t.attempts-1, 0
	if count == nil {
		count, def, lower = t.s.get(t.count), t.attempts, 1
	}
	if !r.springRetries(&d, count, def, lower) {
		r.quiet(d.At)
		return
	}
	factor, _ := springNumber(t.s.get(t.factor), t.multiplier)
	first, most := springTime(t.s.get(t.first), t.initial), springTime(t.s.get(t.most), t.max)
	if v := t.s.get(t.first); v != nil {
		d.SetPlace("backoff.base", v.At)
	}
	if factor <= 1 {
		factor = 1
	}
	grow(&d, min(first, max(most, 1)), factor, most)
	switch {
	case factor == 1 && d.Policy.Retries() > 1:
		at, _ := d.Place("backoff.base")
		r.refuse(at, "R-1", &d, "backoff.base", "waits %v before every retry: set a multiplier", d.Policy.Backoff.Base)
	case !random:
		r.cannot(&d, "R-1", "", "Spring's waits have no jitter by configuration: it takes code")
	default:
		r.cannot(&d, "R-1", "", "Spring's random waits lie between the exponential value and a multiple of it: that is not full jitter")
	}
	if t.kind == forbear.Sync {
		r.springLacks(&d)
	} else {
		r.cannot(&d, "R-3", "total.missing", "Spring has no bound here for a message and its retries together")
		r.cannot(&d, "R-7", "budget", "Spring has no retry budget")
	}
	unbounded(&d)
	r.add(d)
}

// boot is a section with the keys and defaults of Spring Boot.
func (doc springDoc) boot(name string, kind forbear.Kind, keys ...string) (t springRetry, ok bool) {
	t = springRetry{
		name: name, kind: kind, at: doc.scope[0].Fold(keys...), s: doc.scope.at(keys...), profile: doc.profile,
		count: "max-attempts", first: "initial-interval", factor: "multiplier", most: "max-interval",
		attempts: 3, initial: time.Second, max: 10 * time.Second, multiplier: 1,
	}
	return t, t.at.Map()
}

// springListeners reads the retries of consumers.
func (r *reader) springListeners(doc springDoc) {
	for _, kind := range []string{"simple", "direct", "stream"} {
		keys := []string{"spring", "rabbitmq", "listener", kind}
		if t, ok := doc.boot("rabbitmq "+kind+" listener", forbear.Event, append(keys, "retry")...); ok {
			if !springTrue(t.s.get("enabled"), false) {
				r.quiet(t.at.At)
			} else {
				r.springTemplate(t, false)
				r.unjudged(t.at.At, t.name, "where a message goes after the last attempt (R-8) is up to the queue: without a dead-letter exchange it is dropped")
			}
		}
		// Without an end, and without a wait.
		if v := doc.scope[0].Fold(append(keys, "default-requeue-rejected")...); springTrue(v, false) && !springTrue(doc.scope.get(append(keys, "retry", "enabled")...), false) {
			d := policyfile.Dependency{Name: "rabbitmq " + kind + " listener", Route: doc.profile, At: v.At}
			d.Policy.Kind = forbear.Event
			retries(&d, 1, v.At)
			grow(&d, 0, 1, 0)
			r.open(v.At, &d, "a message that fails is put back into its queue, without an end and a wait")
			r.cannot(&d, "R-3", "total.missing", "Spring has no bound here for a message and its retries together")
			r.cannot(&d, "R-7", "budget", "Spring has no retry budget")
			unbounded(&d)
			r.add(d)
		}
	}
	r.springKafka(doc)
	r.springStream(doc)
}

// springKafka reads retry topics, behind which Spring Kafka has a dead-letter topic.
func (r *reader) springKafka(doc springDoc) {
	t, ok := doc.boot("kafka retry topic", forbear.Event, "spring", "kafka", "retry", "topic")
	if !ok || !springTrue(t.s.get("enabled"), false) {
		return
	}
	t.count = "attempts"
	t.s = append(t.s.at("backoff"), t.s...) // where newer versions have them
	t.first, t.most, t.multiplier, t.max = "delay", "max-delay", 0, 0
	random := t.s.get("random")
	if random == nil {
		random = t.s.get("random-back-off")
	}
	r.springTemplate(t, springTrue(random, false) || springTime(t.s.get("jitter"), 0) > 0)
}

// springStream reads the consumers of Spring Cloud Stream, each of which makes three
// attempts unless it says otherwise, or the defaults of all.
func (r *reader) springStream(doc springDoc) {
	path := []string{"spring", "cloud", "stream"}
	section := func(name string, keys ...string) {
		if t, ok := doc.boot(name, forbear.Event, append(path, keys...)...); ok {
			t.s = append(t.s, doc.scope.at(append(path, "default", "consumer")...)...)
			t.first, t.factor, t.most, t.multiplier = "back-off-initial-interval", "back-off-multiplier", "back-off-max-interval", 2
			r.springTemplate(t, false)
		}
	}
	for _, p := range doc.scope[0].Fold(append(path, "bindings")...).Fields() {
		section(p.Key, "bindings", p.Key, "consumer")
	}
	section("stream consumers", "default", "consumer")
}

// springTemplates reads the retries of clients whose callers wait.
func (r *reader) springTemplates(doc springDoc) {
	if t, ok := doc.boot("rabbitmq template", forbear.Sync, "spring", "rabbitmq", "template", "retry"); ok && springTrue(t.s.get("enabled"), false) {
		r.springTemplate(t, false)
	}
	r.springAI(doc)
	if t, ok := doc.boot("config server", forbear.Sync, "spring", "cloud", "config", "retry"); ok && springTrue(t.s.get("enabled"), true) {
		// It is for the start of the application, which fails fast or goes on without.
		if !springTrue(doc.scope.get("spring", "cloud", "config", "fail-fast"), false) {
			r.quiet(t.at.At)
			return
		}
		t.attempts, t.max, t.multiplier = 6, 2*time.Second, 1.1
		r.springTemplate(t, false)
	}
}

// springAI reads the retries of Spring AI, which are on by default.
func (r *reader) springAI(doc springDoc) {
	t, ok := doc.boot("AI models", forbear.Sync, "spring", "ai", "retry")
	if !ok {
		return
	}
	codes := t.s
	t.s = append(t.s, t.s.at("backoff")...)
	t.attempts, t.initial, t.max, t.multiplier = 10, 2*time.Second, 3*time.Minute, 5
	r.springTemplate(t, false)
	d := policyfile.Dependency{Name: t.name, Route: t.profile, At: t.at.At}
	if v := codes.get("on-client-errors"); springTrue(v, false) {
		r.refuse(v.At, "R-4", &d, "classify.http_4xx", "all of 4xx is retried: the same request gets the same response")
	}
	for _, n := range springList(codes.get("on-http-codes")) {
		if slices.Contains(never, n.Text()) {
			r.refuse(n.At, "R-4", &d, "classify.http_"+n.Text(), "%s is retried: the same request gets the same response", n.Text())
		}
	}
}
