package config

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Pattern names packages or files as the go command does: "./internal/pay" or
// "internal/pay" from the module's root, "internal/pay/..." with all below it,
// "..." for everything, "example.com/m/internal/pay" in full, and a file by its
// name behind the package, "internal/pay/client.go" or "internal/pay/*_client.go".
type Pattern string

// Check reports what is wrong with p.
func (p Pattern) Check() error {
	s := strings.TrimPrefix(string(p), "./")
	if s == "" {
		return errors.New("want a pattern such as internal/payments/... or internal/payments")
	}
	if strings.HasPrefix(s, "/") || strings.Contains(s, `\`) || slices.Contains(strings.Split(s, "/"), "..") {
		return fmt.Errorf("%q is not below the module's root: want a pattern such as internal/payments/... instead", string(p))
	}
	if _, err := path.Match(path.Base(s), ""); err != nil {
		return fmt.Errorf("%q: %w", string(p), err)
	}
	if strings.ContainsAny(path.Dir(s), "*?[") {
		return fmt.Errorf("%q: * stands in a file's name only; want a pattern such as internal/payments/... instead", string(p))
	}
	return nil
}

// Place is a file, as patterns see it.
type Place struct {
	Module  string // its path; "" when the driver does not know
	Package string // the import path
	File    string // the name, of which the last element counts
}

// in reports whether p covers the place.
func (at Place) in(p Pattern) bool {
	s := strings.TrimSuffix(strings.TrimPrefix(string(p), "./"), "/")
	if strings.HasSuffix(s, ".go") {
		if ok, err := path.Match(path.Base(s), path.Base(strings.ReplaceAll(at.File, "\\", "/"))); err != nil || !ok {
			return false
		}
		if s = path.Dir(s); s == "." {
			return at.Package == at.Module
		}
	}
	if s == "." {
		return at.Package == at.Module
	}
	s, below := strings.CutSuffix(s, "...")
	s = strings.TrimSuffix(s, "/")
	if s == "" {
		return below
	}
	rel := at.Package
	if at.Module != "" {
		rel = strings.TrimPrefix(strings.TrimPrefix(at.Package, at.Module), "/")
	}
	for _, pkg := range []string{at.Package, rel} {
		if pkg == s || below && strings.HasPrefix(pkg, s+"/") {
			return true
		}
	}
	if at.Module != "" {
		return false
	}
	// The module is unknown: the pattern may begin at any element.
	if below {
		return strings.Contains("/"+at.Package+"/", "/"+s+"/")
	}
	return strings.HasSuffix("/"+at.Package, "/"+s)
}

// Day is the last day on which something holds, as "2027-06-30".
type Day string

// Holds reports whether t lies before the day's end, in UTC.
func (d Day) Holds(t time.Time) bool {
	end, err := time.Parse(time.DateOnly, string(d))
	return err == nil && t.Before(end.AddDate(0, 0, 1))
}
