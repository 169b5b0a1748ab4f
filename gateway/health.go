package gateway

import "net/http"

// healthPrefix begins the paths that the gateway serves itself, on every host
// that has no route of its own.
const healthPrefix = "/health/"

// health says whether the gateway lives, and whether it should be sent
// requests. Neither touches a dependency: a dependency that is down is what the
// gateway is there for.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case healthPrefix + "live":
		report(w, http.StatusOK, "ok")
	case healthPrefix + "ready":
		if g.draining.Load() {
			report(w, http.StatusServiceUnavailable, "draining")
			return
		}
		if g.ready != nil {
			if state, ok := g.ready(); !ok {
				report(w, http.StatusServiceUnavailable, state)
				return
			}
		}
		report(w, http.StatusOK, "ok")
	default:
		newIncoming(r).problem(w, noRoute)
	}
}

// report writes a state of the gateway.
func report(w http.ResponseWriter, status int, state string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"status":"` + state + `"}` + "\n"))
}

// Health serves GET /health/live and /health/ready for an address beside the
// gateway's own, and hands every other request to next. There an orchestrator's probes
// need no certificate of a client, and reach a gateway that listens on loopback alone.
// Such an address is open before the gateway's is: ready says whether that, and all that
// comes before, is done, and that it is not about to end.
func Health(ready func() (state string, ok bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		switch r.URL.Path {
		case healthPrefix + "live":
			report(w, http.StatusOK, "ok")
		case healthPrefix + "ready":
			state, ok := ready()
			if !ok {
				report(w, http.StatusServiceUnavailable, state)
				return
			}
			report(w, http.StatusOK, "ok")
		default:
			next.ServeHTTP(w, r)
		}
	})
}
