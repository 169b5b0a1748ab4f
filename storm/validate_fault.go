package storm

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// fault looks at fault i, all of whose fields have their defaults.
func (c *checker) fault(i int) {
	f := &c.s.Faults[i]
	path := fmt.Sprintf("faults[%d]", i)
	if f.Kind == "" {
		c.add(path+".kind", "is missing")
	} else {
		c.check(unknown(path+".kind", "FaultKind", string(f.Kind)))
	}
	c.ofItsKind(path, f)
	if f.Kind == Errors {
		c.check(unknown(path+".mode", "ErrorMode", string(f.Mode)))
	}
	if f.Status != 0 {
		c.number(path+".status", float64(f.Status), 400, 599)
	}
	c.span(path+".retry_after", f.RetryAfter, time.Hour)
	if f.Method != "" {
		c.check(unknown(path+".method", "Fault.method", f.Method))
	}
	if f.Kind == Slow && f.Time == 0 {
		c.add(path+".time", "is missing: how long a slow request takes")
	}
	c.span(path+".time", f.Time, time.Hour)
	if f.For <= 0 || f.For.D() > maxFault {
		c.add(path+".for", "%v is not positive, or longer than %v", f.For, time.Duration(maxFault))
	}
	c.span(path+".at", f.At, c.s.Duration.D())
	c.number(path+".rate", f.Rate, 0, 1)
	c.number(path+".share", f.Share, 0, 1)
	// A spike multiplies the load; any other factor leaves a part of the capacity.
	high := 1.0
	if f.Kind == Spike {
		high = 1000
	}
	// Nothing at all is a pause, which lets a queue wait; a tiny rest of capacity
	// would make services of days.
	low := 0.0
	if f.Kind == Brownout || f.Kind == SlowStart {
		low = 0.001
	}
	c.number(path+".factor", f.Factor, low, high)
	c.hitReplicas(path+".replicas", f)
	if f.Kind != Spike {
		c.known(path+".service", f.Service)
		c.hitsSomeone(path, f)
	}
}

// hitsSomeone complains about a fault that no request meets: its result would be that of
// a fault from which everything recovers at once.
func (c *checker) hitsSomeone(path string, f *Fault) {
	called, method := false, false
	look := func(to string, k *Client) {
		if to == f.Service {
			called = true
			p, err := k.plan()
			method = method || f.Method == "" || err == nil && f.Method == p.Method
		}
	}
	for i := range c.s.Fleets {
		look(c.s.Fleets[i].Calls, &c.s.Fleets[i].Client)
	}
	for i := range c.s.Services {
		for j := range c.s.Services[i].Calls {
			look(c.s.Services[i].Calls[j].To, &c.s.Services[i].Calls[j].Client)
		}
	}
	switch {
	case !called:
		c.add(path+".service", "hits no one: nothing calls %q", f.Service)
	case !method && slices.Contains(choices["Client.method"], f.Method):
		c.add(path+".method", "hits no one: no client of %q sends %s", f.Service, f.Method)
	}
}

// faultFields are the fields that a kind of fault has besides those of every fault.
var faultFields = map[FaultKind][]string{
	Outage: {"service", "rate", "status", "retry_after", "method"},
	Errors: {"service", "rate", "status", "retry_after", "method", "mode"},
	Slow:   {"service", "rate", "time"}, Brownout: {"service", "factor"}, SlowStart: {"service", "factor"},
	Pause: {"service"}, Spike: {"factor"}, Partition: {"service", "share"},
}

// ofItsKind complains about each field of a fault that its kind does not have: it would
// be ignored, and the result would be that of another fault.
func (c *checker) ofItsKind(path string, f *Fault) {
	fields, ok := faultFields[f.Kind]
	if !ok {
		return // the kind is wrong itself
	}
	all := append([]string{"kind", "at", "for"}, fields...)
	if slices.Contains(fields, "service") {
		all = append(all, "replicas")
	}
	for field, value := range reflect.ValueOf(f).Elem().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !value.IsZero() && !slices.Contains(all, name) {
			c.add(path+"."+name, "does not belong to %s: the fields are %s", f.Kind, strings.Join(all, ", "))
		}
	}
}
