package forward

import (
	"net/http"
	"net/url"
	"strings"
)

// aim makes u the address at the target that a request for in goes to: the target's
// own path takes the place of the prefix. What follows the prefix stays as the caller
// wrote it, for a %2F is not a slash to every server, and a query is passed on whole.
// False means that the path cannot be passed on like that.
func (f *Forwarder) aim(u, in *url.URL) bool {
	raw := in.RawPath
	if raw == "" {
		raw = in.EscapedPath()
	}
	if !passable(raw, in.Path) {
		return false
	}
	rest, ok := cut(raw, f.Prefix)
	if !ok {
		return false
	}
	path := rest
	if base := f.Target.EscapedPath(); base != "" && base != "/" {
		path = join(base, rest)
	} else if path == "" {
		path = "/"
	}
	u.Scheme, u.Host = f.Target.Scheme, f.Target.Host
	u.RawQuery, u.ForceQuery = in.RawQuery, in.ForceQuery
	plain, err := url.PathUnescape(path)
	if err != nil {
		return false
	}
	u.Path, u.RawPath = plain, path
	if plain == path && u.EscapedPath() == path {
		u.RawPath = ""
	}
	if u.EscapedPath() == path {
		return true
	}
	// net/url would escape what the caller has not. An opaque URL is sent as it is, as
	// long as it cannot be taken for the name of a host.
	if strings.HasPrefix(path, "//") {
		return false
	}
	u.Opaque = path
	return true
}

// passable reports whether a path may go on: it begins with a slash, has no fragment
// and no segment that a server would resolve, by which it could leave the base path of
// the target. raw is the path as it came, and plain the same without escapes.
func passable(raw, plain string) bool {
	return raw != "" && raw[0] == '/' && !strings.Contains(raw, "#") && !Dotted(plain)
}

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
// http that names no user (RFC 9110 section 4.2.4), has no fragment, and nothing in which
// a request line would end. HTTP/2 has no line, and would let all of that through.
func Sound(r *http.Request) bool {
	u := r.URL
	rooted := strings.HasPrefix(u.Path, "/") || u.Path == "" && u.Host != ""
	return method(r.Method) && rooted && u.User == nil &&
		(u.Scheme == "" || u.Scheme == "http" || u.Scheme == "https") &&
		!strings.Contains(u.RawQuery, "#") && !blank(u.RawQuery) && !blank(u.RawPath)
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

// cut takes a prefix without escapes off a path, which may have escaped some of it.
// It ends where a segment ends.
func cut(raw, prefix string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(raw, prefix); !ok {
		n := 0
		for range len(prefix) {
			if n < len(raw) && raw[n] == '%' {
				n += 2
			}
			n++
		}
		if n > len(raw) {
			return "", false
		}
		if plain, err := url.PathUnescape(raw[:n]); err != nil || plain != prefix {
			return "", false
		}
		rest = raw[n:]
	}
	return rest, rest == "" || rest[0] == '/'
}

// join puts the base path of a target before a path, with one slash between.
func join(base, path string) string {
	if base[0] != '/' {
		base = "/" + base
	}
	if path == "" {
		return base
	}
	return strings.TrimSuffix(base, "/") + path
}
