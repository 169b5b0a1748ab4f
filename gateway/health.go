package gateway

import "net/http"

// healthPrefix begins the paths that the gateway serves itself, on every host
// that has no route of its own.
const healthPrefix = "/health/"

// health says whether the gateway lives, and whether it should be sent
// requests. Neither touches a dependency: a dependency that is down is what the
// gateway is there for.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, `{"status":"ok"}`
	switch r.URL.Path {
	case healthPrefix + "live":
	case healthPrefix + "ready":
		if g.draining.Load() {
			status, body = http.StatusServiceUnavailable, `{"status":"draining"}`
		}
	default:
		newIncoming(r).problem(w, noRoute)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n"))
}
