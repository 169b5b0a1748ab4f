// Package codeset has sets of status codes. HTTP statuses and gRPC codes are
// both small numbers, and do not overlap, so that one kind of set serves both.
package codeset

import (
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// limit is above all numbers that a set can hold.
const limit = 640

// Set is a set of numbers from 0 to 639, as a value: it can be copied and
// compared, and stored in a fact. The zero value is empty.
type Set [limit / 64]uint64

// Of returns the set of some numbers. Those out of range are left out.
func Of(ns ...int64) (s Set) {
	for _, n := range ns {
		if n >= 0 && n < limit {
			s[n/64] |= 1 << (n % 64)
		}
	}
	return s
}

// Range returns the set of the numbers from lo to hi, both included.
func Range(lo, hi int64) (s Set) {
	for n := max(lo, 0); n <= min(hi, limit-1); n++ {
		s[n/64] |= 1 << (n % 64)
	}
	return s
}

// Has reports whether the set holds a number.
func (s Set) Has(n int64) bool { return n >= 0 && n < limit && s[n/64]&(1<<(n%64)) != 0 }

// Empty reports whether the set holds nothing.
func (s Set) Empty() bool { return s == Set{} }

// Len returns how many numbers the set holds.
func (s Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Or returns what is in one of two sets or in both.
func (s Set) Or(t Set) Set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// And returns what is in both sets.
func (s Set) And(t Set) Set {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

// Minus returns what is in s and not in t.
func (s Set) Minus(t Set) Set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

// All yields the numbers of the set, the least first.
func (s Set) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(int64(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// String writes the set as ranges: "400-428, 430-499".
func (s Set) String() string {
	var parts []string
	first, last := int64(-1), int64(-2)
	end := func() {
		switch {
		case first < 0:
		case first == last:
			parts = append(parts, strconv.FormatInt(first, 10))
		default:
			parts = append(parts, strconv.FormatInt(first, 10)+"-"+strconv.FormatInt(last, 10))
		}
	}
	for n := range s.All() {
		if n != last+1 {
			end()
			first = n
		}
		last = n
	}
	end()
	return strings.Join(parts, ", ")
}
