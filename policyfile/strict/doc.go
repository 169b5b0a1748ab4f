// Package strict reads YAML, of which JSON is a part, key by key. Unknown and repeated
// keys and values of the wrong form are faults, each with its line and column and with
// what may have been meant, and one run reports all of them: a misspelt key that was
// ignored would leave a default in force, unnoticed.
//
// Input is bounded in size, and aliases may not multiply it beyond measure.
//
// Experimental: what this package exports may change in any version.
package strict
