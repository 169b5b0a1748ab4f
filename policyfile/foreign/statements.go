package foreign

import (
	"bytes"
	"regexp"

	"github.com/forbear-go/forbear/policyfile"
)

// statement matches a line of TOML or HCL that gives a value to a key, or begins a section,
// and block one of HCL that begins a block, such as a resource. assigned matches a key within
// a line, which may stand in a text of JSON.
var (
	statement = regexp.MustCompile(`^\s*\[*\s*["']?([\w.-]+)["']?\s*(?:[\]{]|=\s*([^=\s].*))`)
	block     = regexp.MustCompile(`^(\w+)(?:\s+"([\w-]+)")?.*\{\s*$`)
	assigned  = regexp.MustCompile(`([\w.-]+)(?:\\?["'])?\s*[=:]`)
	preset    = regexp.MustCompile(`^\s*default\s*=\s*[^n\s]`) // and not null
	// typed matches the type of a variable of Terraform's, which is no value.
	typed = regexp.MustCompile(`^(optional|object|map|list|set|tuple)\(|^(string|number|bool|any)\b`)
	// remark matches a comment, or the rest of a line that is one.
	remark = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:(?:^|[ \t])(?:#|//).*$)`)
)

// statements looks for settings of retries in a notation that no product has which is read.
func (o *opener) statements(data []byte, in frame) {
	// Lines and columns stay: a comment becomes blanks.
	data = remark.ReplaceAllFunc(data, func(text []byte) []byte {
		return bytes.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, text)
	})
	number, variable := 0, ""
	for line := range bytes.Lines(data) {
		number++
		found := func(key string, column int) {
			o.retry(key, in.at(policyfile.Position{Line: number, Column: 1 + column}))
		}
		if m := block.FindSubmatch(bytes.TrimRight(line, "\r\n")); m != nil {
			o.resource, variable = "", ""
			switch string(m[1]) {
			case "resource", "data":
				o.resource = string(m[2])
			case "variable":
				variable = string(m[2])
			}
		}
		m := statement.FindSubmatchIndex(line)
		switch {
		case variable != "" && aboutRetries(variable) && preset.Match(line):
			found(variable, 0)
		case m != nil && m[4] >= 0 && typed.Match(line[m[4]:m[5]]):
			continue
		case m != nil && aboutRetries(string(line[m[2]:m[3]])):
			found(string(line[m[2]:m[3]]), m[2])
		}
		// One that is known stands within a line too, as in jsonencode({maxReceiveCount = 4}).
		for _, m := range assigned.FindAllSubmatchIndex(line, -1) {
			if key := string(line[m[2]:m[3]]); settingOf(key, o.resource) != nil {
				found(key, m[2])
			}
		}
	}
	o.resource = ""
}
