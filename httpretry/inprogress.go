package httpretry

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxProblem bounds how much of a problem document is looked at.
const maxProblem = 16 << 10

// inProgress reports whether a 409 says that the server is still working on the
// very key that the request carries: the one 409 that may be retried. It puts
// what it has read of the body back.
func inProgress(req *http.Request, resp *http.Response) bool {
	if req.Header.Get(HeaderKey) == "" && (resp.Request == nil || resp.Request.Header.Get(HeaderKey) == "") {
		return false
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || resp.Body == nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &rejoined{io.MultiReader(bytes.NewReader(head), rest), resp.Body}
	var problem struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(head, &problem) != nil {
		return false
	}
	return problem.Type == "in-progress" || strings.HasSuffix(problem.Type, "/in-progress") ||
		strings.HasSuffix(problem.Type, ":in-progress") || strings.HasSuffix(problem.Type, "#in-progress")
}

// rejoined is a body whose beginning was read and put back.
type rejoined struct {
	io.Reader
	io.Closer
}

// failing is the end of a body that broke while its beginning was read: the caller
// meets the same error at the same place.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
