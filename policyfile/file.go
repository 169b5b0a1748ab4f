package policyfile

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
)

// File is a policy file that was found free of faults. It is plain data. The
// JSON names of its fields are the keys of the file.
type File struct {
	Name string `json:"-"`
	// Version is that of the format; 0 when the file does not say, which means 1.
	Version int `json:"version,omitzero"`
	// Schema is what $schema says; it is kept, not followed.
	Schema  string `json:"$schema,omitzero"`
	Service string `json:"service,omitzero"`
	// Instances is how many processes of the service run at most; 0 when the
	// file does not say.
	Instances int `json:"instances,omitzero"`
	// Dependencies, Consumers and Webhooks are in the order of the file.
	Dependencies []Dependency `json:"dependencies,omitempty"`
	// Consumers are the queues that the service works through: policies of
	// kind event.
	Consumers []Dependency `json:"consumers,omitempty"`
	// Webhooks are the endpoints that the service delivers to: policies of
	// kind webhook.
	Webhooks []Dependency `json:"webhooks,omitempty"`
	// Waivers holds all waivers, the expired ones too: a Retryer judges them
	// by the time at which it is built.
	Waivers       []Waiver      `json:"waivers,omitempty"`
	Idempotency   Keys          `json:"idempotency,omitzero"`
	Observability Observability `json:"observability,omitzero"`
	Gateway       Gateway       `json:"gateway,omitzero"`
	Lint          Lint          `json:"lint,omitzero"`

	// Deprecated are the keys that stand in the file under a former name, which a later
	// version will refuse.
	Deprecated []*Fault `json:"-"`

	// Format is "" for a policy file, or the name of the foreign configuration
	// that an adapter read into this form.
	Format string `json:"-"`
	// Unjudged lists what an adapter met and cannot judge.
	Unjudged []*Fault `json:"-"`
	// Unread is the first setting for retries in a file of an adapter that nothing reads, or
	// nil.
	Unread *Fault `json:"-"`
	// Limits lists the rules that the foreign software cannot hold, whatever the
	// file says: one fault for each rule.
	Limits []*Fault `json:"-"`
	// Quiet counts what an adapter judged that retries nothing and is not among the
	// dependencies.
	Quiet int `json:"-"`

	places map[string]Position
	order  map[string]int // where in All each name was when the file was read
}

// Observability switches off what R-10 demands; the zero value demands it.
type Observability struct {
	NoMetrics bool `json:"-"`
	NoLogs    bool `json:"-"`
}

// Dependency is something that the service calls, consumes or delivers to.
type Dependency struct {
	Name string `json:"-"`
	// URL is where the gateway finds it; "" when the file does not say.
	URL string `json:"url,omitzero"`
	// Endpoints is where the gateway's connections go, if not where URL says.
	Endpoints Endpoints `json:"endpoints,omitzero"`
	// ConnectionAge bounds how old a connection of the gateway may be; negative sets
	// no bound, and zero leaves it to the gateway.
	ConnectionAge time.Duration `json:"connection_age,omitzero"`
	// Profile is the name of what the policy extends, or "".
	Profile string `json:"-"`
	// Service is the name of the service behind it, where that is not Name. It
	// ties the policy files of several services together.
	Service string `json:"service,omitzero"`
	// Protocol is http, grpc, amqp or whatever else it speaks: for readers.
	Protocol string `json:"protocol,omitzero"`
	// Methods are the HTTP methods that it is called with, as far as known.
	Methods []string `json:"methods,omitempty"`
	// OtherLayers says what the layers around the owner do, for readers.
	OtherLayers string `json:"other_layers,omitzero"`
	// Keys is what the dependency promises about idempotency keys.
	Keys Keys `json:"keys,omitzero"`
	// DeadLetter is where a durable kind's exhausted work goes.
	DeadLetter DeadLetter `json:"dead_letter,omitzero"`
	// Dedup is how long a consumer remembers the events that it has seen.
	Dedup time.Duration `json:"dedup,omitzero"`
	// SecretEnv is the environment variable that holds a webhook's signing
	// secret. The secret itself has no place in a policy file.
	SecretEnv string `json:"secret,omitzero"`
	// Credentials are those that the gateway sends, where callers send none.
	Credentials Credentials `json:"credentials,omitzero"`
	// Probe is the health endpoint that the gateway asks.
	Probe Probe `json:"health,omitzero"`
	// Pace is whether the gateway paces the sends under the dependency's limit.
	Pace Pace `json:"pace,omitzero"`
	// TLS and HTTP2 are how the gateway speaks to it.
	TLS   TLS   `json:"tls,omitzero"`
	HTTP2 HTTP2 `json:"http2,omitzero"`
	// Policy holds what the file says, profiles included. Fields that the
	// file leaves out are zero and mean the defaults of the kind.
	Policy forbear.Policy `json:",inline"`
	At     Position       `json:"-"`
	misled bool           // has a url that could not be read, which is a fault already

	// Route tells several policies of foreign software for one dependency apart, as
	// the name of a route does; "" in a policy file.
	Route string `json:"-"`
	// Lacks names what foreign software has no bound for, as "budget" and "total".
	Lacks []string `json:"-"`
	// AtLeast says that there may be more attempts than Policy has: the adapter
	// could not see all that decides it.
	AtLeast bool `json:"-"`
	// BodyLimit is what is kept of a request's body to send it again, in bytes: the most
	// that a route to it says, or what foreign software does. Zero means the default.
	BodyLimit Size `json:"-"`
	// Longest is the longest that a call may take, where foreign software has
	// another rule for it than attempts, waits and a hard total; 0 where it has not.
	Longest time.Duration `json:"-"`

	places map[string]place
}

// Keys is what a server promises about idempotency keys. Zero means unknown.
type Keys struct {
	MaxLength int           `json:"max_length,omitzero"`
	Retention time.Duration `json:"retention,omitzero"`
}

// DeadLetter names where exhausted work goes and who is alerted.
type DeadLetter struct {
	Queue string `json:"queue,omitzero"`
	Alert string `json:"alert,omitzero"`
}

// Place returns where a field of the dependency was written, or else the
// nearest section around it. written is false when it was not. Fields are named
// as in "backoff.cap".
func (d *Dependency) Place(field string) (at Position, written bool) {
	if p, ok := d.places[field]; ok {
		return p.Position, true
	}
	l := layer{places: d.places, start: d.At}
	return l.place(field, d.Name).Position, false
}

// SetPlace records where a field comes from, for adapters that make a
// Dependency from something other than a policy file.
func (d *Dependency) SetPlace(field string, at Position) {
	if d.places == nil {
		d.places = map[string]place{}
	}
	d.places[field] = place{at, d.Name}
}

// Value returns a field as a policy file has it: "7" for max_retries, "20%" for
// budget.ratio, "" for one at its default.
func (d *Dependency) Value(field string) string {
	_, values := flatten(*d)
	return values[field]
}

// Target returns the name of the service behind the dependency.
func (d *Dependency) Target() string { return cmp.Or(d.Service, d.Name) }

// Place returns where a key of the file itself was written, as in
// "observability.logs", or the file's beginning.
func (f *File) Place(key string) Position {
	if p, ok := f.places[key]; ok {
		return p
	}
	return Position{File: f.Name, Line: 1, Column: 1}
}

// All returns the dependencies, the consumers and the webhooks.
func (f *File) All() []*Dependency {
	var all []*Dependency
	for _, list := range [][]Dependency{f.Dependencies, f.Consumers, f.Webhooks} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// Policy returns the policy of a dependency.
func (f *File) Policy(dependency string) (forbear.Policy, bool) {
	d, ok := f.Dependency(dependency)
	return d.Policy, ok
}

// Dependency returns the dependency, consumer or webhook of that name.
func (f *File) Dependency(name string) (Dependency, bool) {
	lists := [][]Dependency{f.Dependencies, f.Consumers, f.Webhooks}
	// What was read is where it was, unless the caller has changed the lists.
	if i, ok := f.order[name]; ok {
		for _, list := range lists {
			if i < len(list) && list[i].Name == name {
				return list[i], true
			} else if i -= len(list); i < 0 {
				break
			}
		}
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Name == name {
				return list[i], true
			}
		}
	}
	return Dependency{}, false
}

// Choose returns the dependency, consumer or webhook of a name as it was typed, or
// the only dependency for none. The error names the file, and what may have been meant.
func (f *File) Choose(name string) (*Dependency, error) {
	var names []string
	for i := range f.Dependencies {
		names = append(names, f.Dependencies[i].Name)
	}
	switch {
	case name != "":
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no dependencies", f.Name)
	case len(names) > 1:
		return nil, fmt.Errorf("%s has %d dependencies: name one of %s", f.Name, len(names), strings.Join(names[:min(len(names), 20)], ", "))
	default:
		name = names[0]
	}
	d, ok := f.Dependency(name)
	if !ok {
		return nil, fmt.Errorf("%s has no dependency %q%s", f.Name, name, nearest.Hint(name, names, ""))
	}
	return &d, nil
}

// Options returns what the Retryers of the file's dependencies are built
// with: its waivers, whether retries are logged, and its service, which has
// to be the owner of the retries where a policy names one.
func (f *File) Options() []forbear.Option {
	opts := make([]forbear.Option, 0, len(f.Waivers)+2)
	for _, w := range f.Waivers {
		if w.Dependency == "" || len(w.Files) > 0 {
			continue // it is about code, or about other software
		}
		opts = append(opts, forbear.WithWaiver(w.Waiver))
	}
	if f.Observability.NoLogs {
		opts = append(opts, forbear.WithoutLog())
	}
	return append(opts, forbear.WithService(f.Service))
}
