package listen

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/webhook"
)

// maxBody is the largest payload that forbear delivers, with its envelope.
const maxBody = 2 * webhook.MaxPayload

// shownBody is how many bytes of a body are printed.
const shownBody = 400

// receiver responds to every request and prints it. The zero value with out and now
// accepts everything and checks no signature. It is safe for concurrent use.
type receiver struct {
	secrets []string // as webhook.Verify takes them; one that verifies is enough
	fail    int      // attempts of each call
	status  int      // of those
	now     func() time.Time

	mu  sync.Mutex
	out io.Writer
}

// reply is the body of every response.
type reply struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Attempt int    `json:"attempt"`
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is not whole, or too large", http.StatusBadRequest)
		r.print(cli.Printable(fmt.Sprintf("%s %s  the body did not arrive: %v  400", req.Method, req.URL.Path, err)) + "\n")
		return
	}
	attempt, status := attemptOf(req), http.StatusOK
	if attempt <= r.fail {
		status = r.status
	}
	words := []string{req.Method + " " + req.URL.Path}
	if id := req.Header.Get("Webhook-Id"); id != "" {
		words = append(words, "id "+id)
	} else if key := req.Header.Get("Idempotency-Key"); key != "" {
		words = append(words, "key "+key)
	}
	words = append(words, "attempt "+strconv.Itoa(attempt))
	if req.Header.Get("Webhook-Id") != "" {
		words = append(words, "signature "+r.signature(req, body))
	}
	line := cli.Printable(strings.Join(append(words, strconv.Itoa(status)), "  ")) + "\n"
	if len(body) > 0 {
		line += "  " + shorten(body) + "\n"
	}
	r.print(line)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply{req.Method, req.URL.Path, attempt})
}

// print writes whole lines, so that requests that arrive together are not mixed.
func (r *receiver) print(lines string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = io.WriteString(r.out, lines)
}

// attemptOf returns the number of the attempt, the first being 1. A sender other than
// forbear is always at its first.
func attemptOf(req *http.Request) int {
	n, err := strconv.Atoi(req.Header.Get("X-Retry-Attempt"))
	if err != nil || n < 0 || n > 1<<20 {
		return 1
	}
	return n + 1
}

// signature says whether one of the secrets has signed the request.
func (r *receiver) signature(req *http.Request, body []byte) string {
	h := req.Header
	switch {
	case h.Get("Webhook-Signature") == "":
		return "missing: the endpoint has no secrets"
	case len(r.secrets) == 0:
		return "not checked (--secret)"
	}
	var err error
	for _, secret := range r.secrets {
		err = webhook.Verify(secret, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), body, r.now())
		if err == nil {
			return "valid"
		}
	}
	return "INVALID: " + strings.TrimPrefix(err.Error(), webhook.ErrSignature.Error()+": ")
}

// shorten returns the beginning of a body as one line that no terminal obeys.
func shorten(body []byte) string {
	if len(body) <= shownBody {
		return cli.Printable(string(body))
	}
	return fmt.Sprintf("%s... (%d bytes)", cli.Printable(string(body[:shownBody])), len(body))
}
