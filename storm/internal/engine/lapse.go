package engine

// This file is the timeout of a server: some time after a request's arrival its client
// gets a 503, and the work on it goes on.

// watch schedules the end of the service's patience with task t, which has just arrived.
func (x *engine) watch(t int32, v *serviceState) {
	if at := x.now + int64(v.v.Timeout); v.v.Timeout > 0 && at < x.end {
		x.push(at, evLapse, uint32(t), 0)
	}
}

// onLapse responds for task t when its service's patience is over. The task itself goes
// on without a client, and a new one carries the response: so each is freed once. Another
// task that has taken the place of t since has not arrived at the same time, or is due as
// well.
func (x *engine) onLapse(t int32) {
	k := &x.tasks[t]
	v := &x.services[k.service]
	if x.abandoned(k) || k.at == onItsWay || k.at+int64(v.v.Timeout) != x.now {
		return
	}
	k.at = responded
	response := *k
	response.failure = v.failures + timedOut
	r := x.newTask() // may move the tasks
	x.tasks[r] = response
	x.respond(r, statusError)
}
