package foreign

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/terminal"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// lowest and highest are the statuses that there are.
const lowest, highest = 100, 599

// span returns the statuses that a word stands for: "404", "4xx" or "400-499". It returns none
// for another word.
func span(word string) (all []int) {
	first, last, _ := strings.Cut(strings.ToLower(strings.TrimSpace(word)), "-")
	if class, ok := strings.CutSuffix(first, "xx"); ok {
		first, last = class+"00", class+"99"
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(cmp.Or(last, first))
	if err != nil || err2 != nil || from < lowest || to > highest {
		return nil
	}
	for status := from; status <= to; status++ {
		all = append(all, status)
	}
	return all
}

// statuses judges a list of statuses that are retried.
func (r *reader) statuses(d *policyfile.Dependency, codes []*tree.Node) {
	for _, c := range codes {
		r.terminals(c.At, d, c.Text(), "")
	}
}

// terminals judges the statuses of a word that is retried.
func (r *reader) terminals(at policyfile.Position, d *policyfile.Dependency, word, instead string) {
	r.retried(at, d, word, span(word), instead)
}

// retried judges the statuses that a word stands for. Those that R-4 forbids are a
// finding each; where there are none, those that it does not list are one. instead is what to
// write in the place of a group.
func (r *reader) retried(at policyfile.Position, d *policyfile.Dependency, word string, all []int, instead string) {
	var unlisted []int
	forbidden := false
	for _, status := range all {
		switch terminal.Status(status) {
		case terminal.Forbidden:
			forbidden = true
			r.refuse(at, "R-4", d, "classify.http_"+strconv.Itoa(status), "%d is retried: the same request gets the same response", status)
		case terminal.Unlisted:
			unlisted = append(unlisted, status)
		case terminal.Retryable:
		}
	}
	switch {
	case forbidden || len(unlisted) == 0:
	case len(all) == 1:
		r.unlisted(at, d, strconv.Itoa(all[0]))
	case r.told.first(at, word):
		// Whether the service has such responses no file says.
		r.refuse(at, "R-4", d, "unlisted."+word, "%s includes %s, which R-4 does not list: %s", word, few(unlisted), cmp.Or(instead, "write only statuses that it lists")).Uncertain = true
	}
}

// code judges a gRPC code that is retried, by its name. word is what the product
// calls it.
func (r *reader) code(at policyfile.Position, d *policyfile.Dependency, name, word string) {
	switch terminal.Code(name) {
	case terminal.Forbidden:
		r.refuse(at, "R-4", d, "classify.grpc_"+name, "%s is retried: the same request gets the same response", word)
	case terminal.Unlisted:
		r.unlisted(at, d, word)
	case terminal.Retryable:
	}
}

// unlisted records once a place that a failure is retried which the library would not retry.
// A word that products have in their defaults is a note.
func (r *reader) unlisted(at policyfile.Position, d *policyfile.Dependency, what string) {
	if r.told.first(at, what) {
		r.refuse(at, "R-4", d, "unlisted."+what, "%s is retried, and R-4 does not list it: leave it out", what).Uncertain = usual(what)
	}
}

// few names the first statuses of a list.
func few(statuses []int) string {
	text := strconv.Itoa(statuses[0])
	switch len(statuses) {
	case 1:
		return text
	case 2:
		return text + " and " + strconv.Itoa(statuses[1])
	}
	return text + ", " + strconv.Itoa(statuses[1]) + " and others"
}

// misspelt records once a place a word that the product does not know, with what becomes of
// it and what to write. Without such a hint it may be a word of a later version.
func (r *reader) misspelt(at policyfile.Position, d *policyfile.Dependency, word, becomes, hint string) {
	if word == "" || unset(word) || !r.told.first(at, "word", word) {
		return
	}
	r.refuse(at, "", d, "word."+word, "%q %s%s", word, becomes, hint).Uncertain = hint == ""
}

// meant is the hint to the known word that is nearest to word. A status is not a slip of
// another one.
func meant(word string, known []string) string {
	if _, err := strconv.Atoi(strings.TrimPrefix(word, "http_")); err == nil {
		return ": leave it out"
	}
	return nearest.Hint(word, known, "")
}

// statusNames has the statuses by their names without separators. Some of Spring's are not
// those of net/http.
var statusNames = func() map[string]int {
	names := map[string]int{
		"PAYLOADTOOLARGE": 413, "CONTENTTOOLARGE": 413, "URITOOLONG": 414, "IAMATEAPOT": 418, "UNPROCESSABLECONTENT": 422, "BANDWIDTHLIMITEXCEEDED": 509,
		// Before Spring 7.
		"CHECKPOINT": 103, "MOVEDTEMPORARILY": 302, "INSUFFICIENTSPACEONRESOURCE": 419, "METHODFAILURE": 420, "DESTINATIONLOCKED": 421,
	}
	for status := lowest; status <= highest; status++ {
		if text := http.StatusText(status); text != "" {
			names[strings.ToUpper(strings.NewReplacer(" ", "", "-", "", "'", "").Replace(text))] = status
		}
	}
	return names
}()

// statusNamed returns the status of a name: "NOT_FOUND" or "NotFound". It returns 0 for one
// that is not known.
func statusNamed(name string) int {
	return statusNames[strings.ToUpper(strings.ReplaceAll(name, "_", ""))]
}
