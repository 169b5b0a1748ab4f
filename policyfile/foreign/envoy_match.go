package foreign

import (
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// unkeyed are the methods that need a key to be repeated.
var unkeyed = []string{"POST", "PATCH"}

// boundToSafe reports whether requests that match all of these headers may be
// repeated: no POST and no PATCH does, or all of them carry a key.
func boundToSafe(headers []*tree.Node) bool {
	if slices.ContainsFunc(headers, keyed) {
		return true
	}
	return !slices.ContainsFunc(unkeyed, func(method string) bool {
		return !slices.ContainsFunc(headers, func(h *tree.Node) bool { return rejects(h, method) })
	})
}

// askedSafely is boundToSafe for headers of which one is enough.
func askedSafely(headers []*tree.Node) bool {
	return len(headers) > 0 && !slices.ContainsFunc(headers, func(h *tree.Node) bool { return !boundToSafe([]*tree.Node{h}) })
}

// keyed reports whether a matcher asks for an idempotency key.
func keyed(h *tree.Node) bool {
	present := h.Fold("present_match")
	return strings.EqualFold(h.Get("name").Text(), "Idempotency-Key") &&
		!h.Fold("invert_match").True() && (present == nil || present.True())
}

func rejects(h *tree.Node, method string) bool {
	return h.Get("name").Text() == ":method" && !accepts(h, method)
}

// accepts reports whether a matcher of Envoy's may let a value through, in all the
// forms that its APIs have had. What is not understood may.
func accepts(h *tree.Node, value string) bool {
	text := h.Fold("string_match")
	fold := text.Fold("ignore_case").True()
	matched, known := true, true
	switch {
	case text != nil:
		matched, known = matches(text, "", fold, value)
	case h.Fold("safe_regex_match") != nil:
		matched, known = whole(h.Fold("safe_regex_match", "regex").Text(), value)
	case h.Fold("present_match") != nil:
		matched = h.Fold("present_match").True()
	case h.Fold("range_match") != nil:
		known = false
	default:
		matched, known = matches(h, "_match", false, value)
	}
	return !known || matched != h.Fold("invert_match").True()
}

// matches reads the forms that a string may be matched in: those of StringMatcher,
// of Envoy's older fields, and of Istio. Without one of them all values match.
func matches(n *tree.Node, suffix string, fold bool, value string) (matched, known bool) {
	if fold {
		value = strings.ToLower(value)
	}
	for _, form := range []struct {
		key  string
		test func(value, want string) bool
	}{
		{"exact", func(v, want string) bool { return v == want }},
		{"prefix", strings.HasPrefix},
		{"suffix", strings.HasSuffix},
		{"contains", strings.Contains},
	} {
		if want := n.Fold(form.key + suffix); want != nil {
			text := want.Text()
			if fold {
				text = strings.ToLower(text)
			}
			return form.test(value, text), true
		}
	}
	for _, pattern := range []*tree.Node{n.Fold("safe_regex", "regex"), n.Get("regex")} {
		if pattern != nil {
			return whole(pattern.Text(), value)
		}
	}
	return true, n == nil || len(n.Pairs) == 0 || suffix != ""
}

// whole matches a pattern of RE2 against all of a value.
func whole(pattern, value string) (matched, known bool) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return true, false
	}
	return re.MatchString(value), true
}

// retryHeader matches the headers by which a request asks Envoy for retries. Those that a
// route adds count too, since the router adds them before it decides on retries.
var retryHeader = regexp.MustCompile(`(?i)^x-envoy-(retry-|retriable-|max-retries$)`)

// asksOpen is said where a route adds such a header.
const asksOpen = "%s: the route adds the header %s, whose request for retries is not judged"

// asksFor returns such a header that one of these scopes adds, or nil.
func asksFor(scopes []*tree.Node) *tree.Node {
	for _, scope := range scopes {
		for _, option := range scope.Fold("request_headers_to_add").List() {
			if header := option.Get("header"); retryHeader.MatchString(header.Get("key").Text()) {
				return header
			}
		}
	}
	return nil
}

// removes reports whether a route takes a header of the caller's away.
func (x *envoyRoute) removes(header string) bool {
	return slices.ContainsFunc(x.scopes, func(scope *tree.Node) bool {
		return slices.ContainsFunc(scope.Fold("request_headers_to_remove").List(), func(n *tree.Node) bool {
			return strings.EqualFold(n.Text(), header)
		})
	})
}
