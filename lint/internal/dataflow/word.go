package dataflow

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Words splits a name into its words, in lower case: maxHTTPRetries is max, http,
// retries. A word within another one is none: unexpected does not say expected.
func Words(name string) (words []string) {
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
		}
	}
	cut(len(runes))
	return words
}

// retryWord is retry in all its forms. What is retrieved is not retried.
var retryWord = regexp.MustCompile(`(?i)retry|retri(es|ed|er|able)`)

// SaysRetry reports whether a name or a text speaks of retries.
func SaysRetry(name string) bool { return retryWord.MatchString(name) }

// notWord is a word that turns the meaning of a name around.
var notWord = regexp.MustCompile(`^(non?|not|never|cannot|cant|dont|stop(s|ped)?|fatal|permanent(ly)?|terminal|(non?|not|un)[_-]?retr.*)$`)

// SaysNot reports whether a name says the opposite of its other words:
// nonRetryable, stopRetrying.
func SaysNot(name string) bool { return slices.ContainsFunc(Words(name), notWord.MatchString) }
