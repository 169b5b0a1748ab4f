package httpretry

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/peek"
)

// maxProblem bounds how much of a problem document is looked at.
const maxProblem = 16 << 10

// inProgress reports whether a 409 says that the server is still working on the
// very key that the request carries: the one 409 that may be retried. It puts
// what it has read of the body back.
func inProgress(req *http.Request, resp *http.Response) bool {
	if idemkey.Find(req.Header) == "" && (resp.Request == nil || idemkey.Find(resp.Request.Header) == "") {
		return false
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || resp.Body == nil {
		return false
	}
	head, _, body, _ := peek.Body(resp.Body, maxProblem)
	resp.Body = body
	var problem struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(head, &problem) != nil {
		return false
	}
	return problem.Type == "in-progress" || strings.HasSuffix(problem.Type, "/in-progress") ||
		strings.HasSuffix(problem.Type, ":in-progress") || strings.HasSuffix(problem.Type, "#in-progress")
}
