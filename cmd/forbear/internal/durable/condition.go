package durable

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/webhook"
)

// condition is what a write of an endpoint depends on: RFC 9110 section 13.1.
// The zero value holds always. Without conditions two operators who edit the same
// endpoint undo each other's changes unseen.
type condition struct {
	given  bool     // If-Match was sent
	exists bool     // "*": the endpoint is there
	tags   []string // the strong ones; a weak one never matches
	create bool     // If-None-Match: *
}

// errPrecondition is 412: nothing was written, because the endpoint is not what the
// caller believes. The caller has to read the endpoint again before another try:
// repeating the same request cannot help.
var errPrecondition = errors.New("precondition failed")

// tagOf is the entity tag of a version. It is strong: equal versions are equal in
// every byte of the configuration. Quotes are part of the tag (RFC 9110 section
// 8.8.3).
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// conditionOf reads If-Match and If-None-Match. The latter has one use here, to add
// an endpoint and never to replace one; any other is refused rather than ignored.
// Several header lines count as one list, as RFC 9110 section 5.3 has it.
func conditionOf(r *http.Request) (c condition, err error) {
	if lines, ok := r.Header["If-Match"]; ok {
		c.given = true
		text := strings.TrimSpace(strings.Join(lines, ","))
		if c.exists = text == "*"; !c.exists {
			if c.tags, err = parseTags(text); err != nil {
				return c, err
			}
		}
	}
	if lines, ok := r.Header["If-None-Match"]; ok {
		if c.create = strings.TrimSpace(strings.Join(lines, ",")) == "*"; !c.create {
			return c, fmt.Errorf("%w: If-None-Match: want * (write only if it does not exist)", errBadRequest)
		}
	}
	return c, nil
}

// tag is one entity tag, tagList a list of them. Elements of a list may be empty (section
// 5.6.1).
var (
	tag     = regexp.MustCompile(`(W/)?("[^"\x00-\x20\x7f]*")`)
	tagList = regexp.MustCompile(`^[, \t]*` + tag.String() + `(?:[ \t]*,[, \t]*` + tag.String() + `)*[, \t]*$`)
)

// parseTags reads a list of entity tags and returns the strong ones: If-Match compares
// strongly (section 13.1.1). A tag without its quotes, as people write it by hand, would match
// nothing, and the caller would look for another writer who does not exist.
func parseTags(text string) (tags []string, err error) {
	if !tagList.MatchString(text) {
		return nil, fmt.Errorf(`%w: If-Match: want * or a list of tags such as "3", with their quotes`, errBadRequest)
	}
	for _, t := range tag.FindAllStringSubmatch(text, -1) {
		if weak := t[1] != ""; !weak {
			tags = append(tags, t[2])
		}
	}
	return tags, nil
}

// check refuses a stored version, of an endpoint or an application, that the
// condition does not name. It must run inside the write's transaction, where that
// cannot change any more.
func (c condition) check(what, id string, version int64) error {
	if !c.given || c.exists || slices.Contains(c.tags, tagOf(version)) {
		return nil
	}
	return c.failed(what, id, "it has version "+tagOf(version)+", which If-Match does not name")
}

// missing turns the error for what does not exist into that of an If-Match which does not
// hold: the condition comes first (RFC 9110 section 13.1.1).
func (c condition) missing(what, id string, err error) error {
	if c.given && errors.Is(err, webhook.ErrNotFound) {
		return c.failed(what, id, "it does not exist")
	}
	return err
}

// failed says of what, and why. Saying that nothing was written spares the caller
// the question.
func (condition) failed(what, id, why string) error {
	return fmt.Errorf("%w: %s %q: %s; nothing was written", errPrecondition, what, id, why)
}
