package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
	"github.com/forbear-go/forbear/gateway"
)

// funcs are what templates call.
var funcs = map[string]any{
	"when":    when,
	"short":   short,
	"took":    took,
	"capped":  capped,
	"has":     func(list []string, s string) bool { return slices.Contains(list, s) },
	"count":   count,
	"percent": func(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" },
	"path":    url.PathEscape,
	"query":   url.QueryEscape,
	"alter":   alter,
	"link":    link,
	"call":    func(c gateway.FailedCall) string { return idOf(c.CorrelationID + c.At.String()) },
	"pairs":   pairs,
	"line":    line,
	"join":    strings.Join,
	"fields":  fields,
}

// when writes a time: a script shows it in the reader's zone, and UTC on hover.
func when(t time.Time) page.Markup {
	if t.IsZero() {
		return "-"
	}
	utc := t.UTC()
	return page.Markup(fmt.Sprintf(`<time datetime="%s" title="%s">%[2]s</time>`, utc.Format(time.RFC3339Nano), utc.Format("2006-01-02 15:04:05 UTC")))
}

// short writes a duration to three digits.
func short(d time.Duration) string {
	for _, of := range []struct{ unit, part time.Duration }{
		{time.Hour, time.Minute}, {time.Minute, time.Second}, {time.Second, 10 * time.Millisecond}, {time.Millisecond, 10 * time.Microsecond}, {time.Microsecond, 10},
	} {
		if d >= 100*of.unit {
			return d.Round(of.unit).String()
		}
		if d >= of.unit {
			return d.Round(of.part).String()
		}
	}
	return d.String()
}

// count writes a number with its thousands apart.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// alter returns a query with some of its values set anew, as pairs of name and value; one
// that is empty goes.
func alter(q url.Values, pairs ...string) string {
	next := url.Values{}
	maps.Copy(next, q)
	for i := 0; i+1 < len(pairs); i += 2 {
		if next.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			next.Del(pairs[i])
		}
	}
	return "?" + next.Encode()
}

// link returns an address of another host, or "#" for one that a browser would run, such as
// javascript:, or that is not written plainly.
func link(address string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~:/?#[]@&=,;", r)
	}
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") || strings.ContainsFunc(address, odd) {
		return "#"
	}
	return address
}

// pair is a name and its count.
type pair struct {
	Name  string
	Count int64
}

// pairs returns counts, the highest first.
func pairs(counts map[string]int64) (list []pair) {
	for name, n := range counts {
		list = append(list, pair{name, n})
	}
	slices.SortFunc(list, func(a, b pair) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return list
}

// line draws what a dependency did in each minute as SVG: calls as a line, and retries and
// failures as bars below it, to one scale.
func line(calls, retries, failed []uint32) page.Markup {
	const height, step = 24, 2
	most := 1.0
	for i := range calls {
		most = max(most, float64(calls[i]), float64(retries[i]+failed[i]))
	}
	y := func(n uint32) float64 { return math.Round(height*(1-float64(n)/most)*10) / 10 }
	var bars, points strings.Builder
	total, retried, lost := int64(0), int64(0), int64(0)
	for i := range calls {
		x := i * step
		if n := retries[i] + failed[i]; n > 0 {
			fmt.Fprintf(&bars, `<path class="retries" d="M%d %vV%d"/>`, x+1, y(n), height)
		}
		if failed[i] > 0 {
			fmt.Fprintf(&bars, `<path class="failed" d="M%d %vV%d"/>`, x+1, y(failed[i]), height)
		}
		fmt.Fprintf(&points, "%d,%v ", x+1, y(calls[i]))
		total, retried, lost = total+int64(calls[i]), retried+int64(retries[i]), lost+int64(failed[i])
	}
	return page.Markup(fmt.Sprintf(`<svg class="line" role="img" viewBox="0 0 %d %d" aria-label="last hour: %s calls, %s retries, %s failed">%s<polyline points="%s"/></svg>`,
		len(calls)*step, height, count(total), count(retried), count(lost), bars.String(), strings.TrimSpace(points.String())))
}
