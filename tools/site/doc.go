// Package site holds the tests of the built site: `make site-check` builds it and
// runs them.
package site
