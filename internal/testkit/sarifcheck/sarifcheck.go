// Package sarifcheck holds SARIF to version 2.1.0 in the parts
// that forbear writes: which properties an object may and must have, of what
// type, and how they refer to each other. It is for tests.
package sarifcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// shape is an object of the standard: its properties, each with the name of its
// shape; "!" in front marks a required one.
type shape map[string]string

// shapes are those of the standard's section 3 that forbear uses, without the
// properties that it does not.
var shapes = map[string]shape{
	"sarifLog":             {"$schema": "uri", "!version": "string", "!runs": "[]run"},
	"run":                  {"!tool": "tool", "automationDetails": "runAutomationDetails", "columnKind": "columnKind", "invocations": "[]invocation", "originalUriBaseIds": "{}artifactLocation", "results": "[]result"},
	"runAutomationDetails": {"id": "string"},
	"tool":                 {"!driver": "toolComponent"},
	"toolComponent":        {"!name": "string", "semanticVersion": "string", "informationUri": "uri", "rules": "[]reportingDescriptor", "notifications": "[]reportingDescriptor"},
	"reportingDescriptor": {
		"!id": "string", "name": "string", "shortDescription": "text", "fullDescription": "text", "help": "text", "helpUri": "uri",
		"defaultConfiguration": "reportingConfiguration", "properties": "bag",
	},
	"reportingConfiguration":       {"level": "level"},
	"text":                         {"!text": "string", "markdown": "string"},
	"invocation":                   {"!executionSuccessful": "bool", "toolExecutionNotifications": "[]notification"},
	"notification":                 {"!message": "message", "level": "level", "descriptor": "reportingDescriptorReference", "locations": "[]location"},
	"reportingDescriptorReference": {"id": "string", "index": "count"},
	"result": {
		"ruleId": "string", "ruleIndex": "count", "level": "level", "!message": "message", "locations": "[]location",
		"relatedLocations": "[]location", "partialFingerprints": "{}string", "baselineState": "baselineState",
		"suppressions": "[]suppression", "fixes": "[]fix", "properties": "bag",
	},
	"message":          {"text": "string"},
	"location":         {"id": "count", "physicalLocation": "physicalLocation", "logicalLocations": "[]logicalLocation", "message": "message"},
	"logicalLocation":  {"fullyQualifiedName": "string", "kind": "string"},
	"physicalLocation": {"!artifactLocation": "artifactLocation", "region": "region"},
	"artifactLocation": {"uri": "uri", "uriBaseId": "string"},
	"region":           {"startLine": "position", "startColumn": "position", "endLine": "position", "endColumn": "position"},
	"suppression":      {"!kind": "suppressionKind", "status": "suppressionStatus", "justification": "string"},
	"fix":              {"description": "text", "!artifactChanges": "[1]artifactChange"},
	"artifactChange":   {"!artifactLocation": "artifactLocation", "!replacements": "[1]replacement"},
	"replacement":      {"!deletedRegion": "region", "insertedContent": "artifactContent"},
	"artifactContent":  {"text": "string"},
}

var enums = map[string][]string{
	"level":             {"none", "note", "warning", "error"},
	"columnKind":        {"utf16CodeUnits", "unicodeCodePoints"},
	"baselineState":     {"new", "unchanged", "updated", "absent"},
	"suppressionKind":   {"inSource", "external"},
	"suppressionStatus": {"accepted", "underReview", "rejected"},
}

// Check returns all that is wrong with a log.
func Check(data []byte) error {
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	c := &checker{}
	c.value("$", "sarifLog", doc)
	if len(c.errs) == 0 {
		c.references(data)
	}
	return errors.Join(c.errs...)
}

type checker struct{ errs []error }

func (c *checker) fault(at, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

func (c *checker) value(at, kind string, v any) {
	switch {
	case strings.HasPrefix(kind, "[]"), strings.HasPrefix(kind, "[1]"):
		list, ok := v.([]any)
		if !ok || strings.HasPrefix(kind, "[1]") && len(list) == 0 {
			c.fault(at, "got %v, want a list", v)
		}
		for i, x := range list {
			c.value(fmt.Sprintf("%s[%d]", at, i), kind[strings.Index(kind, "]")+1:], x)
		}
	case strings.HasPrefix(kind, "{}"):
		object, ok := v.(map[string]any)
		if !ok {
			c.fault(at, "got %v, want an object", v)
		}
		for name, x := range object {
			c.value(at+"."+name, kind[2:], x)
		}
	case shapes[kind] != nil:
		c.object(at, shapes[kind], v)
	case enums[kind] != nil:
		if s, ok := v.(string); !ok || !slices.Contains(enums[kind], s) {
			c.fault(at, "got %v, want one of %v", v, enums[kind])
		}
	default:
		c.scalar(at, kind, v)
	}
}

func (c *checker) object(at string, s shape, v any) {
	object, ok := v.(map[string]any)
	if !ok {
		c.fault(at, "got %v, want an object", v)
		return
	}
	for name, x := range object {
		kind := s[name]
		if kind == "" {
			kind = s["!"+name]
		}
		if kind == "" {
			c.fault(at, "property %s is not one of the standard's", name)
			continue
		}
		c.value(at+"."+name, kind, x)
	}
	for name := range s {
		if need, required := strings.CutPrefix(name, "!"); required && object[need] == nil {
			c.fault(at, "%s is missing", need)
		}
	}
}

func (c *checker) scalar(at, kind string, v any) {
	s, isString := v.(string)
	n, isNumber := v.(float64)
	_, isBool := v.(bool)
	_, isBag := v.(map[string]any)
	ok := false
	switch kind {
	case "string":
		ok = isString
	case "uri":
		_, err := url.Parse(s)
		ok = isString && s != "" && err == nil && !strings.ContainsAny(s, " \\")
	case "bool":
		ok = isBool
	case "count":
		ok = isNumber && n >= 0 && n == float64(int(n))
	case "position":
		ok = isNumber && n >= 1 && n == float64(int(n))
	case "bag":
		ok = isBag
	}
	if !ok {
		c.fault(at, "got %v, want a %s", v, kind)
	}
}

// references checks what the shapes cannot: indices, identities and regions.
func (c *checker) references(data []byte) {
	type region struct{ StartLine, StartColumn, EndLine, EndColumn int }
	type location struct {
		ID               int
		PhysicalLocation struct{ Region region }
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules, Notifications []struct{ ID string } }
			}
			Invocations []struct {
				ToolExecutionNotifications []struct {
					Descriptor struct {
						ID    string
						Index *int
					}
				}
			}
			Results []struct {
				RuleID                      string
				RuleIndex                   *int
				Locations, RelatedLocations []location
			}
		}
	}
	if err := json.Unmarshal(data, &log); err != nil {
		c.fault("$", "%v", err)
		return
	}
	if log.Version != "2.1.0" {
		c.fault("$.version", "got %q, want 2.1.0", log.Version)
	}
	for _, run := range log.Runs {
		rules, kinds := run.Tool.Driver.Rules, run.Tool.Driver.Notifications
		for _, v := range run.Invocations {
			for i, n := range v.ToolExecutionNotifications {
				if d := n.Descriptor; d.Index != nil && (*d.Index >= len(kinds) || kinds[*d.Index].ID != d.ID) {
					c.fault(fmt.Sprintf("$.runs.invocations.toolExecutionNotifications[%d]", i), "index %d is not that of %s", *d.Index, d.ID)
				}
			}
		}
		for i, r := range run.Results {
			at := fmt.Sprintf("$.runs.results[%d]", i)
			if r.RuleIndex != nil && (*r.RuleIndex >= len(rules) || rules[*r.RuleIndex].ID != r.RuleID) {
				c.fault(at, "ruleIndex %d is not that of %s", *r.RuleIndex, r.RuleID)
			}
			ids := map[int]bool{}
			for _, l := range r.RelatedLocations {
				if ids[l.ID] {
					c.fault(at, "two related locations have the id %d", l.ID)
				}
				ids[l.ID] = true
			}
			for _, l := range slices.Concat(r.Locations, r.RelatedLocations) {
				g := l.PhysicalLocation.Region
				if g.EndLine != 0 && (g.EndLine < g.StartLine || g.EndLine == g.StartLine && g.EndColumn < g.StartColumn) {
					c.fault(at, "region %+v ends before it begins", g)
				}
			}
		}
	}
}
