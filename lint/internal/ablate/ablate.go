// Package ablate switches parts of the linter off, one at a time, to see what each is
// worth: make ablate counts the labelled places without it. A part that changes nothing
// goes.
package ablate

// Part is one part of the linter.
type Part struct{ Name, Does string }

// Parts are what can be switched off, with what they do.
var Parts = []Part{
	{"assume", "what a branch says of a value holds behind it"},
	{"before", "a first attempt ahead of the loop ends as those in it do"},
	{"facts", "summaries of functions of other packages"},
	{"handed", "what a call hands to a retry helper"},
	{"implementers", "the only type of the package behind an interface"},
	{"init", "what variables of the package hold at its start"},
	{"items", "each turn has an item of its own"},
	{"polls", "a schedule of polls may be fixed"},
	{"recursion", "functions that call themselves"},
	{"restarts", "what is started again when it ends"},
	{"score", "the score of a retry"},
	{"table", "the table of libraries"},
	{"words", "names around a retry"},
}
