package forward

import (
	"net/http"
	"strings"
)

// Dotted reports whether a path without escapes has dot segments, for one server or
// another: some take a backslash for a slash, and servers of Java take the parameters
// off a segment before they resolve it.
func Dotted(path string) bool {
	if !strings.Contains(path, "/.") && !strings.Contains(path, `\.`) {
		return false
	}
	for segment := range strings.FieldsFuncSeq(path, slash) {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func slash(r rune) bool { return r == '/' || r == '\\' }

// Sound reports whether the request line of a request can be written again (RFC 9112
// section 3): its method is a token; its target is a path, or the address of one over
// http that names no user (RFC 9110 section 4.2.4), has no fragment, no dot segment, and
// nothing in which a request line would end. HTTP/2 has no line, and would let all of
// that through.
func Sound(r *http.Request) bool {
	u := r.URL
	rooted := strings.HasPrefix(u.Path, "/") || u.Path == "" && u.Host != ""
	return method(r.Method) && rooted && u.User == nil &&
		(u.Scheme == "" || u.Scheme == "http" || u.Scheme == "https") &&
		!strings.Contains(u.RawQuery, "#") && !blank(u.RawQuery) && !blank(u.RawPath) && !Dotted(u.Path)
}

// Authority reports whether s can be the host of a request, with or without a port: a name
// or an address (RFC 9110 section 7.2), or "" where none is asked for. HTTP/2 has no line
// that would end in it and lets everything through, which goes on in X-Forwarded-Host:
// there a comma begins the host of another hop. Of the characters that a name may have
// by RFC 3986, those that no name has are refused.
func Authority(s string) bool {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, port = s[:i], s[i+1:]
	}
	more := "-._~%"
	if inner, ok := strings.CutPrefix(host, "["); ok { // an IPv6 address
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return false
		}
		more += ":"
	}
	return strings.Trim(port, "0123456789") == "" && !strings.ContainsFunc(host, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(more, c))
	})
}

// method reports whether s is a token, as a method is (RFC 9110 section 5.6.2).
func method(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
	})
}

// blank reports whether s has a space or a control character.
func blank(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f })
}
