package foreign

import (
	"regexp"
	"slices"
	"strings"
)

// truth is whether a condition holds for a request of some method that has no
// idempotency key.
type truth int

const (
	untrue truth = iota
	unclear
	certain
)

func (t truth) not() truth { return certain - t }

// guarded reports whether a request of that method, without an idempotency key, is kept
// from being repeated, or does not arrive at a server: by the backend's own rules, or by
// those of every frontend that passes requests on to it.
func (p *proxy) guarded(method string) bool {
	return p.guards(method) || len(p.from) > 0 && !slices.ContainsFunc(p.from, func(f *proxy) bool {
		return f.open.Line > 0 || !f.guards(method)
	})
}

// guards is guarded for a section's own rules. Conditions that are not understood are
// taken as not covering the request.
func (p *proxy) guards(method string) bool {
	for _, l := range p.rules {
		holds := p.condition(l.words[2:], method)
		switch l.words[1] {
		case "disable-l7-retry", "set-retries", "deny", "reject", "tarpit", "return", "redirect", "silent-drop":
			if holds == certain && !l.setsRetries() {
				return true
			}
		case "allow":
			// What is let through here does not meet the rules below.
			if holds != untrue {
				return false
			}
		}
	}
	return false
}

// condition evaluates what stands behind "if" or "unless": a rule without either
// always applies.
func (p *proxy) condition(words []string, method string) truth {
	i := slices.IndexFunc(words, func(w string) bool { return w == "if" || w == "unless" })
	if i < 0 {
		return certain
	}
	either, all := untrue, certain
	negated := false
	rest := words[i+1:]
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		if word == "or" || word == "||" {
			either, all = max(either, all), certain
			continue
		}
		for strings.HasPrefix(word, "!") {
			negated, word = !negated, word[1:]
		}
		if word == "" {
			continue // it stands apart from what it negates
		}
		term := unclear
		if word == "{" {
			end := slices.Index(rest, "}")
			if end < 0 {
				return unclear
			}
			term, rest = criterion(rest[:end], method), rest[end+1:]
		} else {
			term = p.acl(word, method)
		}
		if negated {
			term = term.not()
		}
		// Terms that stand side by side all have to hold.
		all, negated = min(all, term), false
	}
	either = max(either, all)
	if words[i] == "unless" {
		return either.not()
	}
	return either
}

// acl evaluates a condition by its name. Of lines with one name, one is enough.
func (p *proxy) acl(name, method string) truth {
	if lines, ok := p.acls[name]; ok {
		found := untrue
		for _, words := range lines {
			found = max(found, criterion(words, method))
		}
		return found
	}
	if m, ok := strings.CutPrefix(name, "METH_"); ok && slices.Contains(haproxyMethods, m) {
		return truthOf(m == method)
	}
	switch name {
	case "TRUE":
		return certain
	case "FALSE":
		return untrue
	}
	return unclear
}

// haproxyMethods are those that HAProxy has names such as METH_POST for, of which METH_GET
// is HEAD too. It has none for PATCH.
var haproxyMethods = []string{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"}

func truthOf(b bool) truth {
	if b {
		return certain
	}
	return untrue
}

// keyHeader matches a sample of the header that makes a write repeatable.
var keyHeader = regexp.MustCompile(`(?i)^(req\.)?f?hdr\(idempotency-key\)$`)

// criterion evaluates a sample with its flags and values, such as "method POST".
func criterion(words []string, method string) truth {
	if len(words) == 0 {
		return unclear
	}
	match, fold, values := "str", false, []string(nil)
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-i":
			fold = true
		case "-m":
			if i++; i < len(words) {
				match = words[i]
			}
		case "--":
		case "-f", "-M", "-u", "-n":
			return unclear
		default:
			values = append(values, words[i])
		}
	}
	switch {
	case words[0] == "always_true":
		return certain
	case words[0] == "always_false":
		return untrue
	case keyHeader.MatchString(words[0]):
		return untrue // what is not there matches nothing
	case words[0] != "method" || len(values) == 0:
		return unclear
	}
	for _, v := range values {
		if strings.EqualFold(v, method) && (fold || v == method) && match == "str" {
			return certain
		}
		if match == "reg" {
			if fold {
				v = "(?i)" + v
			}
			if re, err := regexp.Compile(v); err != nil {
				return unclear
			} else if re.MatchString(method) {
				return certain
			}
		}
	}
	if match != "str" && match != "reg" {
		return unclear
	}
	return untrue
}
