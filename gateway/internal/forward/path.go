package forward

import (
	"net/url"
	"strings"
)

// aim makes u the address at the target that a request for in goes to: the target's
// own path takes the place of the prefix. What follows the prefix stays as the caller
// wrote it, for a %2F is not a slash to every server, and a query is passed on whole.
// False means that the path cannot be passed on like that.
func (t *Target) aim(u, in *url.URL) bool {
	raw := in.RawPath
	if raw == "" {
		raw = in.EscapedPath()
	}
	if !passable(raw, in.Path) {
		return false
	}
	rest, ok := cut(raw, t.Prefix)
	if !ok {
		return false
	}
	path := rest
	if base := t.URL.EscapedPath(); base != "" && base != "/" {
		path = join(base, rest)
	} else if path == "" {
		path = "/"
	}
	u.Scheme, u.Host = t.URL.Scheme, t.URL.Host
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
