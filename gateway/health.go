package gateway

import "net/http"

// healthPrefix begins the paths that the gateway serves itself, on every host
// that no route names.
const healthPrefix = "/health/"

// health says whether the gateway lives, and whether it should be sent
// requests. Neither touches a dependency: a dependency that is down is what the
// gateway is there for.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	ready := func() (string, bool) {
		switch {
		case g.draining.Load():
			return "draining", false
		case g.ready != nil:
			return g.ready()
		}
		return "", true
	}
	if !probe(w, r.URL.Path, ready) {
		newRequest(r, false).problem(w, noRoute)
	}
}

// probe responds to a probe, and reports whether the path is one of a probe.
func probe(w http.ResponseWriter, path string, ready func() (state string, ok bool)) bool {
	state, ok := "ok", true
	switch path {
	case healthPrefix + "live":
	case healthPrefix + "ready":
		state, ok = ready()
	default:
		return false
	}
	status := http.StatusServiceUnavailable
	if ok {
		status, state = http.StatusOK, "ok"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"status":"` + state + `"}` + "\n"))
	return true
}

// Health serves GET /health/live and /health/ready for an address beside the
// gateway's own, and hands every other request to next. There an orchestrator's probes
// need no certificate of a client, and reach a gateway that listens on loopback alone.
// Such an address is open before the gateway's is: ready says whether that, and all that
// comes before, is done, and that it is not about to end.
func Health(ready func() (state string, ok bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !read || !probe(w, r.URL.Path, ready) {
			next.ServeHTTP(w, r)
		}
	})
}
