package dataflow

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for name, want := range map[string][]string{
		"maxHTTPRetries": {"max", "http", "retries"},
		"OK_CODES":       {"ok", "codes"},
		"status2xx":      {"status2xx"},
		"IsOK":           {"is", "ok"},
		"":               nil,
	} {
		if got := Words(name); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// TestSaysRetry: a word that only holds the letters says nothing.
func TestSaysRetry(t *testing.T) {
	for name, want := range map[string]bool{
		"shouldRetry": true, "MAX_RETRIES": true, "isRetriable": true, "retrying": true, "retriedAt": true, "Retrier": true,
		"retrieve": false, "retriever": false, "retrieval": false, "entries": false, "countries": false, "poetry": false,
	} {
		if got := SaysRetry(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"nonRetryable": true, "NotRetryable": true, "nonretryable": true, "unretryable": true, "stopRetry": true, "isFatal": true,
		"canonicalRetry": false, "notifyRetry": false, "retryable": false, "denoteRetry": false,
	} {
		if got := SaysNot(name); got != want {
			t.Errorf("%s says not: got %v, want %v", name, got, want)
		}
	}
}
