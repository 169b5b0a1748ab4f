// Package published holds the library and the gateway to test data about retries that
// others have published. The data are here as facts, in our own form. Where forbear does
// something else, the test names the rule, and docs/published-tests.md has the figures.
package published
