package durable

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/webhook"
)

//go:embed openapi.json
var openAPI []byte

// maxRequest bounds a request's body: a message's payload in base64, and more. A
// longer body is refused with 413 while it is read, so it never fills the memory.
func maxRequest(maxPayload int) int64 {
	return 640<<10 + int64(cmp.Or(maxPayload, webhook.DefaultMaxPayload))*3/2
}

// route is one operation of the API. It returns what to send and not how: adapt
// gives every response its headers, and every error its problem. A returned error
// must name one of the faults in response.go, or the caller sees 503.
type route struct {
	method, path string
	// tenants says that a token of one application may call it. It keeps to what belongs
	// to that application.
	tenants bool
	serve   operation
}

// Who may call a route, beside the operator.
const (
	tenants   = true
	operators = false
)

// routes are all operations of the API. openapi.json describes the same ones, and a
// test holds the two together.
func (s *Service) routes() []route {
	endpoint, application := s.endpointResource(), s.applicationResource()
	return []route{
		{"POST", "/v1/messages", tenants, takes(s.postMessage)},
		{"GET", "/v1/messages", tenants, s.listMessages},
		{"POST", "/v1/messages/cancel", tenants, s.actOnMany(canceling)},
		{"POST", "/v1/messages/send-again", tenants, s.actOnMany(sendingAgain)},
		{"POST", "/v1/messages/erase", tenants, s.actOnMany(erasing)},
		{"GET", "/v1/messages/{id}", tenants, s.getMessage},
		{"DELETE", "/v1/messages/{id}", tenants, s.eraseMessage},
		{"POST", "/v1/messages/{id}/cancel", tenants, s.actOnOne(canceling)},
		{"POST", "/v1/messages/{id}/send-again", tenants, s.actOnOne(sendingAgain)},
		{"GET", "/v1/endpoints", tenants, s.listEndpoints},
		{"POST", "/v1/endpoints", tenants, takes(s.postEndpoint)},
		{"GET", "/v1/endpoints/{id}", tenants, endpoint.get},
		{"PUT", "/v1/endpoints/{id}", tenants, takes(s.putEndpoint)},
		{"PATCH", "/v1/endpoints/{id}", tenants, endpoint.patch},
		{"DELETE", "/v1/endpoints/{id}", tenants, endpoint.delete},
		{"GET", "/v1/endpoints/{id}/stats", tenants, s.getStats},
		{"GET", "/v1/stats", tenants, s.listStats},
		{"POST", "/v1/endpoints/{id}/secrets/rotate", tenants, mayTake(endpoint.rotated)},
		{"POST", "/v1/endpoints/{id}/enable", tenants, s.enableEndpoint},
		{"POST", "/v1/endpoints/{id}/disable", tenants, mayTake(s.disableEndpoint)},
		{"POST", "/v1/endpoints/{id}/test", tenants, mayTake(s.testEndpoint)},
		{"POST", "/v1/endpoints/{id}/test-and-enable", tenants, s.testAndEnable},
		{"GET", "/v1/applications", operators, s.listApplications},
		{"GET", "/v1/applications/{id}", tenants, application.get},
		{"PUT", "/v1/applications/{id}", operators, takes(s.putApplication)},
		{"PATCH", "/v1/applications/{id}", operators, application.patch},
		{"DELETE", "/v1/applications/{id}", operators, application.delete},
		{"POST", "/v1/applications/{id}/secrets/rotate", tenants, mayTake(application.rotated)},
		{"GET", "/v1/token", tenants, s.showCaller},
		{"GET", "/v1/tokens", operators, s.listTokens},
		{"POST", "/v1/tokens", operators, takes(s.postToken)},
		{"DELETE", "/v1/tokens/{name}", operators, s.revokeToken},
		{"GET", "/v1/dead-letters", tenants, s.listLetters},
		{"GET", "/v1/dead-letters/stats", operators, s.letterStats},
		{"GET", "/v1/dead-letters/export", operators, s.exportLetters},
		{"GET", "/v1/dead-letters/{id}", tenants, s.getLetter},
		{"POST", "/v1/dead-letters/discard", operators, takes(s.discardLetters)},
		{"POST", "/v1/dead-letters/{id}/discard", operators, takes(s.discardLetter)},
		{"GET", "/v1/redrives", tenants, s.listRedrives},
		{"POST", "/v1/redrives", tenants, takes(s.postRedrive)},
		{"GET", "/v1/redrives/{id}", tenants, s.getRedrive},
		{"POST", "/v1/redrives/{id}/pause", tenants, s.setRedrive(queue.JobPaused)},
		{"POST", "/v1/redrives/{id}/resume", tenants, s.setRedrive(queue.JobRunning)},
		{"POST", "/v1/redrives/{id}/cancel", tenants, s.setRedrive(queue.JobCanceled)},
		{"GET", "/v1/alerts", operators, s.listAlerts},
		{"GET", "/v1/alerts/health", operators, s.alertHealth},
		{"POST", "/v1/alerts/test", operators, s.testAlerts},
		{"GET", "/v1/audit", operators, s.listAudit},
		{"GET", "/v1/keys", operators, s.listKeys},
		{"POST", "/v1/keys/find", operators, takes(s.findKeys)},
		{"POST", "/v1/keys/settle", operators, takes(s.settleKey)},
		{"GET", "/v1/instances", operators, s.listInstances},
		{"GET", "/v1/openapi.json", tenants, func(*http.Request) (int, any, error) { return http.StatusOK, json.RawMessage(openAPI), nil }},
	}
}

// handler is the API under /v1/. The order is deliberate: requests from other sites are
// refused first, then those without the token, and only then is a path looked up. Around all
// of it callers get their time, those without a token too.
func (s *Service) handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, s.adapt(r))
	}
	forgery := http.NewCrossOriginProtection()
	forgery.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, http.StatusForbidden, "cross-origin", "a browser sent this write from another site")
	}))
	return s.deadlines.forBody(forgery.Handler(s.authorize(o, exact(known(mux)))))
}

// known gives a wrong method and an unknown path problems, and not the plain text of
// net/http.
func known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := headers{}
		refusal.ServeHTTP(refused, r)
		allow := http.Header(refused).Get("Allow")
		if allow == "" {
			writeProblem(w, r, http.StatusNotFound, "not-found", "no such path: see /v1/openapi.json")
			return
		}
		w.Header().Set("Allow", allow)
		writeProblem(w, r, http.StatusMethodNotAllowed, "method-not-allowed", "this path allows "+allow)
	})
}

// headers are those of a response that is not sent.
type headers http.Header

func (h headers) Header() http.Header         { return http.Header(h) }
func (h headers) Write(p []byte) (int, error) { return len(p), nil }
func (h headers) WriteHeader(int)             {}

// exact refuses paths that the mux would redirect: another path is another resource,
// and a client may not follow with its body.
func exact(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for part := range strings.SplitSeq(strings.Trim(r.URL.EscapedPath(), "/"), "/") {
			if part == "" || part == "." || part == ".." {
				writeProblem(w, r, http.StatusNotFound, "not-found", "a part of the path is empty, . or ..: write / in an id as %2F")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// correlation returns the caller's id, when it is fit to be repeated, or a new
// one. Spaces and control characters could forge a line of the log. A new id is made
// instead of an error: a bad header must not fail a good request.
func correlation(r *http.Request) string {
	if id := inbound.ID(r.Header.Values("X-Correlation-ID")); id != "" {
		return id
	}
	return webhook.NewID("req")
}
