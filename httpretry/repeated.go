package httpretry

import (
	"net/http"
	"strconv"
	"strings"
)

// repeated returns the number of the attempt that an SDK above says it is
// making, by the header that its makers use; 0 where none says so. It is all
// that can be seen of a layer above without marking every first attempt.
func repeated(h http.Header) int {
	if v := h["X-Stainless-Retry-Count"]; len(v) > 0 { // OpenAI's, Anthropic's and others: retries so far
		if n := small(v[0]); n > 0 {
			return n + 1
		}
	}
	if v := h["Amz-Sdk-Request"]; len(v) > 0 { // AWS: attempt=2; max=3
		for field := range strings.SplitSeq(v[0], ";") {
			if n, ok := strings.CutPrefix(strings.TrimSpace(field), "attempt="); ok {
				return small(n)
			}
		}
	}
	for _, v := range h["X-Goog-Api-Client"] { // Google Cloud: ... gccl-attempt-count/2
		if _, n, ok := strings.Cut(v, "gccl-attempt-count/"); ok {
			n, _, _ = strings.Cut(n, " ")
			return small(n)
		}
	}
	return 0
}

// small reads a number that counts attempts, or 0.
func small(s string) int {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return int(n)
	}
	return 0
}
