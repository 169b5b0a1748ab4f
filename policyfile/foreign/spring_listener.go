package foreign

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springRabbit reads one kind of listeners of RabbitMQ.
func (r *reader) springRabbit(doc springDoc, kind string) {
	listener := []string{"spring", "rabbitmq", "listener"}
	keys := append(slices.Clone(listener), kind)
	if t, ok := doc.boot("rabbitmq "+kind+" listener", forbear.Event, append(keys, "retry")...); ok {
		if !springTrue(t.s.get("enabled"), false) {
			r.quiet(t.at.At)
		} else {
			r.springTemplate(t, false)
			r.unjudged(t.at.At, t.name, "where a message goes after the last attempt (R-8) depends on the queue: without a dead-letter exchange it is dropped")
		}
	}
	own, s := doc.scope[0].Fold(keys...), doc.scope.at(keys...)
	used := doc.scope.get(append(listener, "type")...).Text()
	mode, _ := resolved(s.get("acknowledge-mode"))
	v := own.Fold("default-requeue-rejected")
	// Messages are put back by default, where the container acknowledges them. What holds
	// for every profile is said once.
	byDefault := own.Map() && len(s) == 1 && s.get("default-requeue-rejected") == nil && (used == kind || used == "" && kind == "simple") && (mode == "" || tree.Same(mode, "auto"))
	if springTrue(s.get("retry", "enabled"), false) || !springTrue(v, byDefault) {
		return
	}
	at := placed(v, own.Place())
	d := policyfile.Dependency{Name: "rabbitmq " + kind + " listener", Route: doc.profile, At: at}
	d.Policy.Kind = forbear.Event
	retries(&d, 1, at)
	grow(&d, 0, 1, 0)
	r.open(at, &d, "a message that fails is requeued forever, without a wait: set default-requeue-rejected to false, or retry.enabled to true")
	r.springLacks(&d)
	unbounded(&d)
	r.add(d)
}

// springKafka reads retry topics, behind which Spring Kafka has a dead-letter topic.
// Without them its error handler decides, which is code or the default.
func (r *reader) springKafka(doc springDoc) {
	topics := springTrue(doc.scope.get("spring", "kafka", "retry", "topic", "enabled"), false)
	t, ok := doc.boot("kafka retry topic", forbear.Event, "spring", "kafka", "retry", "topic")
	if !ok || !topics {
		kafka := doc.scope[0].Fold("spring", "kafka")
		listener := cmp.Or(kafka.Fold("listener"), kafka.Fold("consumer"))
		// The consumers of Spring Cloud Stream take these settings over, and do otherwise.
		always := doc.scope[1:].at("spring", "kafka")
		fresh := always.get("listener") == nil && always.get("consumer") == nil
		if listener.Map() && fresh && !topics && doc.scope.get("spring", "cloud", "stream", "bindings") == nil {
			r.unjudged(listener.At, "", "a message that fails in a Kafka listener is tried 10 times without a wait and then skipped (R-1, R-8), unless the code has an error handler or retry topics")
		}
		return
	}
	t.count = "attempts"
	t.s = append(t.s.at("backoff"), t.s...) // where newer versions have them
	t.first, t.most, t.multiplier, t.max = "delay", "max-delay", 0, 0
	random := cmp.Or(t.s.get("random"), t.s.get("random-back-off"))
	r.springTemplate(t, springTrue(random, false) || given(t.s.get("jitter")) != nil)
}

// streamInput matches the name of a binding that is the input of a function.
var streamInput = regexp.MustCompile(`-in-\d+$`)

// springStream reads the consumers of Spring Cloud Stream, each of which makes three
// attempts unless it says otherwise, or the defaults of all. A binding without settings
// is a consumer's by its name, or by its group, which producers do not have.
func (r *reader) springStream(doc springDoc) {
	path := []string{"spring", "cloud", "stream"}
	section := func(name string, at *tree.Node, keys ...string) {
		t, _ := doc.boot(name, forbear.Event, append(slices.Clone(path), keys...)...)
		t.s = append(t.s, doc.scope.at(append(slices.Clone(path), "default", "consumer")...)...)
		t.at = at
		t.first, t.factor, t.most, t.multiplier = "back-off-initial-interval", "back-off-multiplier", "back-off-max-interval", 2
		if r.springTemplate(t, false) && !doc.deadLetters(name) {
			r.unjudged(at.At, name, "where a message of %s goes after the last attempt (R-8) depends on its binder: without a dead-letter queue it is dropped", name)
		}
	}
	for _, p := range doc.scope[0].Fold(append(path, "bindings")...).Fields() {
		at := p.Value.Fold("consumer")
		// What holds for every profile has been read.
		fresh := doc.scope[1:].get(append(path, "bindings", p.Key)...) == nil
		if at == nil && fresh && p.Value.Map() && (streamInput.MatchString(p.Key) || p.Value.Fold("group") != nil) {
			at = p.Value
		}
		if at.Map() {
			section(p.Key, at, "bindings", p.Key, "consumer")
		}
	}
	if at := doc.scope[0].Fold(append(path, "default", "consumer")...); at.Map() {
		section("stream consumers", at, "default", "consumer")
	}
}

// deadLetters reports whether a binder keeps the messages of a binding that failed.
func (doc springDoc) deadLetters(binding string) bool {
	for _, stream := range doc.scope.at("spring", "cloud", "stream") {
		for _, binder := range stream.Pairs {
			for _, keys := range [][]string{{"bindings", binding, "consumer"}, {"default", "consumer"}} {
				consumer := binder.Value.Fold(keys...)
				if springTrue(consumer.Fold("enable-dlq"), false) || springTrue(consumer.Fold("auto-bind-dlq"), false) {
					return true
				}
			}
		}
	}
	return false
}

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

// springTemplate reads such a section, and reports whether it retries anything. One
// without growth has the same wait each time; none of them has jitter, unless random
// says so.
func (r *reader) springTemplate(t springRetry, random bool) bool {
	d := policyfile.Dependency{Name: t.name, Route: t.profile, At: t.at.At}
	d.Policy.Kind = t.kind
	// Spring Boot 4 counts retries, under a name of its own.
	count, def, lower := t.s.get("max-retries"), t.attempts-1, 0
	if count == nil {
		count, def, lower = t.s.get(t.count), t.attempts, 1
	}
	if !r.springRetries(&d, count, def, lower) {
		r.quiet(d.At)
		return false
	}
	factor := r.springFactor(&d, t.s.get(t.factor), t.multiplier)
	first, most := r.springTime(&d, "backoff.base", t.s.get(t.first), t.initial), r.springTime(&d, "backoff.cap", t.s.get(t.most), t.max)
	factor = max(factor, 1)
	if most > 0 {
		first = min(first, most)
	}
	grow(&d, first, factor, most)
	switch {
	case factor == 1 && d.Policy.Retries() > 1:
		at, _ := d.Place("backoff.base")
		r.refuse(at, "R-1", &d, "backoff.base", "waits %v before every retry: set a multiplier", each(d.Policy.Backoff.Base))
	case !random:
		r.cannot(&d, "R-1", "", "Spring's waits have no jitter by configuration: add it in code")
	default:
		r.cannot(&d, "R-1", "", "Spring's random waits are between the exponential value and a multiple of it: that is not full jitter")
	}
	r.springLacks(&d)
	unbounded(&d)
	r.add(d)
	return true
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

// springLacks records what no setting of Spring can hold, for a client whose caller waits or
// for a message.
func (r *reader) springLacks(d *policyfile.Dependency) {
	what, sync := "message", d.Policy.Kind == forbear.Sync
	if sync {
		what = "call"
	}
	r.cannot(d, "R-3", "total.missing", "Spring cannot bound a %s and its retries together here", what)
	if sync {
		r.cannot(d, "R-5", "", "Spring ignores Retry-After: a server that asks for a pause is called again too early")
	} else {
		r.cannot(d, "R-6", "", "Spring hands a message to its listener again: the file does not say whether it may run twice")
	}
	r.cannot(d, "R-7", "budget", "Spring has no retry budget")
}
