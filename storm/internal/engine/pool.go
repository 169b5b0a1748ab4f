package engine

import "github.com/forbear-go/forbear/storm/internal/model"

// pool is the connections of one instance, as http.Transport.MaxConnsPerHost bounds
// them: an attempt holds one from when it is sent to its response or timeout, and those
// that find none wait in line.
type pool struct {
	free int
	line fifo
}

// newPools returns the pools of the instances of e, or nil without a bound.
func newPools(e *model.Edge) []pool {
	if e.Connections == 0 {
		return nil
	}
	all := make([]pool, e.Instances)
	for i := range all {
		all[i].free = e.Connections
	}
	return all
}

// poolOf returns the pool of the instance that makes c, or nil.
func (x *engine) poolOf(c *call) *pool {
	if p := x.pools[c.edge]; p != nil {
		return &p[c.instance]
	}
	return nil
}

// connect takes a connection for task t of c and reports whether there was one. Otherwise
// t waits in line, while its timeout runs.
func (x *engine) connect(c *call, t int32) bool {
	p := x.poolOf(c)
	switch {
	case p == nil:
		return true
	case p.free == 0:
		p.line.enqueue(t)
		return false
	}
	p.free--
	c.connected = true
	return true
}

// disconnect ends the use of a connection by c, if it has one. It is free at once: a
// response leaves it open, and a timeout closes it, so that a new one may be opened. Those
// in line whose timeout is over have left it. An event transmits the next, since a service
// that responds at once would otherwise call this function again for each one in line.
func (x *engine) disconnect(c *call) {
	if !c.connected {
		return
	}
	c.connected = false
	p := x.poolOf(c)
	for p.line.length > 0 {
		t := p.line.dequeue()
		k := &x.tasks[t]
		if next := &x.calls[k.call]; next.gen == k.callGen {
			next.connected = true
			x.push(x.now, evConnect, uint32(t), 0)
			return
		}
		x.freeTask = append(x.freeTask, t)
	}
	p.free++
}

// onConnected transmits task t, unless its timeout was over in the same instant.
func (x *engine) onConnected(t int32) {
	if k := &x.tasks[t]; x.calls[k.call].gen != k.callGen {
		x.freeTask = append(x.freeTask, t)
		return
	}
	x.transmit(t)
}
