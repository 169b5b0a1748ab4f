package foreign

import "slices"

// kept is whether connections to an upstream are kept for more requests.
type kept int

const (
	notKept    kept = iota
	keptOfLate      // since nginx 1.29.7, and not before
	keptAlways
)

// keeps reads what decides on it. Since 1.29.7 nginx keeps connections to every upstream
// block, and speaks HTTP/1.1 to it without the header that ends them. Before, both had
// to be said.
func (u *nginxUnit) keeps() kept {
	version, said := u.get("http_version")
	conn, _ := u.get("keep_conn")
	early := u.upstream.keepalive != ""
	switch u.module.prefix {
	case "proxy":
		if u.connection == "close" || said && version.arg() == "1.0" {
			return notKept
		}
		early = early && said && (u.connection == "set" || version.arg() == "2")
	case "fastcgi":
		if !slices.Contains(conn.args, "on") {
			return notKept
		}
	case "uwsgi", "scgi":
		return notKept
	}
	switch {
	case u.stream || !u.upstream.explicit || u.upstream.keepalive == "0":
		return notKept
	case early:
		return keptAlways
	}
	return keptOfLate
}

// repeats notes, once a file, that a request which fails on a kept connection is sent
// once more: nginx counts no try for such a failure, whatever the limit on tries.
func (u *nginxUnit) repeats(words []string) bool {
	when := u.keeps()
	if when == notKept || !slices.Contains(words, "error") || slices.Contains(words, "off") {
		return false
	}
	if key := u.dep.At.File + "\x00kept"; !u.noted[key] {
		u.noted[key] = true
		since := ""
		if when == keptOfLate {
			since = "since nginx 1.29.7 "
		}
		u.r.unjudged(u.dep.At, u.dep.Name, "%sconnections to %s are kept: what fails on one is sent again beside all tries, as often as there are such connections", since, u.dep.Name)
	}
	return true
}
