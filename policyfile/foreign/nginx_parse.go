package foreign

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// directive is one directive of nginx with its place, and its block when it
// has one. args[0] is its name.
type directive struct {
	args  []string
	at    policyfile.Position
	block []directive // not nil where there is one, though it be empty
}

// arg returns the first argument, or "".
func (d *directive) arg() string {
	if len(d.args) < 2 {
		return ""
	}
	return d.args[1]
}

// unset reports whether a value is to be filled in by a template: nginx itself
// takes no variables where this is asked.
func unset(value string) bool {
	return strings.Contains(value, "$") || strings.Contains(value, "{{")
}

// speaksNginx reports whether a text has the grammar of nginx and a directive of
// its that is about passing requests on, or a block that holds such.
func speaksNginx(name string, data []byte) (bool, *policyfile.Fault) {
	p := &nginxParser{part: &Part{Name: name}, cursor: cursor{data: data, line: 1, column: 1}}
	all, fault := p.block(0)
	marks := slices.ContainsFunc(all, nginxMark)
	if fault != nil && (marks || p.marked) {
		if bytes.Contains(data, []byte("{%")) {
			fault.Message = isTemplate
			// A template that passes nothing on, and includes nothing that may, retries nothing.
			if !passesOn.Match(data) {
				return false, nil
			}
		}
		return false, fault
	}
	return fault == nil && marks, nil
}

// passesOn matches the directives of a file that may pass requests on.
var passesOn = regexp.MustCompile(`_pass\b|_next_upstream|\bupstream\b|\binclude\b`)

// nginxBlocks and nginxWords are directives by which a file of nginx is known.
var (
	nginxBlocks = []string{"http", "server", "upstream", "location", "stream", "events"}
	nginxWords  = []string{"proxy_set_header", "upstream_conf"}
)

func nginxMark(d directive) bool {
	name := d.args[0]
	_, passes := nginxModules[name]
	return d.block != nil && slices.Contains(nginxBlocks, name) || passes || slices.Contains(nginxWords, name) || strings.Contains(name, "_next_upstream")
}

// nginxSpan matches a part of a duration: a number, and its unit unless it is in seconds.
var nginxSpan = regexp.MustCompile(`^(\d+)\s*(ms|s|m|h|d)?\s*`)

// nginxTime reads a duration such as "30s", "500ms" or "1m30s", or seconds
// without a unit. Spaces may separate the parts.
func nginxTime(s string) (sum time.Duration, ok bool) {
	// A century is as good as what is longer, and does not overflow.
	const most = 100 * 365 * day
	for s != "" {
		part := nginxSpan.FindStringSubmatch(s)
		if part == nil {
			return 0, false
		}
		n, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			return 0, false
		}
		sum = min(sum+saturated(float64(n), cmp.Or(spanUnits[part[2]], time.Second)), most)
		s = s[len(part[0]):]
	}
	return sum, true
}

// nginxParser reads the grammar of nginx.conf: words that a semicolon ends,
// or a block in braces. It knows no directives, so that those of any module
// can be read.
type nginxParser struct {
	cursor
	part   *Part
	marked bool // a directive was met by which a file of nginx is known
}

func (p *nginxParser) fault(at policyfile.Position, format string, args ...any) *policyfile.Fault {
	return &policyfile.Fault{Position: at, Message: fmt.Sprintf(format, args...)}
}

// maxDepth bounds blocks within blocks; nginx itself knows five or six.
const maxDepth = 50

// block reads directives up to the brace that closes it, or the end of the
// file at depth 0.
func (p *nginxParser) block(depth int) (all []directive, fault *policyfile.Fault) {
	all = []directive{}
	if depth > maxDepth {
		return all, p.fault(p.part.at(p.line, p.column), "blocks are nested more than %d deep", maxDepth)
	}
	var d directive
	for {
		word, line, column, end := p.word()
		// A quoted word may be empty and still is an argument.
		if word != "" || end == '"' {
			if len(d.args) == 0 {
				d.at = p.part.at(line, column)
			}
			d.args = append(d.args, word)
		}
		switch end {
		case ';':
			if len(d.args) > 0 {
				all = append(all, d)
			}
			d = directive{}
		case '{':
			if len(d.args) > 0 && strings.HasSuffix(d.args[0], "_by_lua_block") {
				p.lua()
				d.block = []directive{}
				all, d = append(all, d), directive{}
				continue
			}
			inner, fault := p.block(depth + 1)
			if d.block = inner; len(d.args) > 0 {
				all = append(all, d)
				p.marked = p.marked || nginxMark(d)
			}
			if fault != nil {
				return all, fault
			}
			d = directive{}
		case '}', 0:
			switch {
			case len(d.args) > 0:
				return all, p.fault(d.at, "%q has no end", d.args[0])
			case end == 0 && depth > 0:
				return all, p.fault(p.part.at(p.line, p.column), "a block has no end")
			case end == '}' && depth == 0:
				return all, p.fault(p.part.at(p.line, p.column), "unexpected }")
			}
			return all, nil
		}
	}
}
