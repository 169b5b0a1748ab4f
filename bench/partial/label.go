package main

import (
	"math"
	"strings"
)

// Labels stand beside their own curve, where they touch no other and no label;
// where there is no such place, further away with a line that leads to it.

// label is the place of a text, on its base line, and of the point of its curve
// that a line leads to.
type label struct {
	point
	to  point
	led bool
}

// box is the place of a text, a little larger than it.
type box struct{ left, top, right, bottom float64 }

const lineHeight = 13.0

// widthOf is about how wide a bold text is.
func widthOf(text string) (w float64) {
	for _, r := range text {
		if strings.ContainsRune("filt-,' ", r) {
			w += 4.6
		} else {
			w += 7.8
		}
	}
	return w
}

// boxOf is the box of a text that begins at p.
func boxOf(p point, text string) box {
	return box{p.x - 3, p.y - lineHeight + 1, p.x + widthOf(text) + 3, p.y + 4}
}

// labels returns the place for the text of each curve.
func labels(texts []string, curves [][]point) []label {
	chosen := make([]label, len(texts))
	dots := make([][]point, len(curves))
	for j, c := range curves {
		dots[j] = walk(c, 3)
	}
	var taken []box
	for j, text := range texts {
		least := math.Inf(1)
		for _, l := range candidates(curves[j], text) {
			b := boxOf(l.point, text)
			if b.left < left || b.right > width-right || b.top < top || b.bottom > height-bottom {
				continue
			}
			if cost := clutter(b, l, j, dots, taken); cost < least {
				chosen[j], least = l, cost
			}
		}
		taken = append(taken, boxOf(chosen[j].point, text))
	}
	return chosen
}

// candidates returns the places around the points of a curve.
func candidates(curve []point, text string) (found []label) {
	w := widthOf(text)
	for _, p := range walk(curve, 4) {
		for _, q := range []point{
			{p.x + 8, p.y - 5},
			{p.x + 8, p.y + lineHeight},
			{p.x - w - 8, p.y - 5},
			{p.x - w - 8, p.y + lineHeight},
			{p.x - w/2, p.y - 8},
			{p.x - w/2, p.y + lineHeight + 4},
		} {
			found = append(found, label{point: q})
		}
		for _, far := range []float64{30, 45, 60} {
			found = append(found, label{point{p.x + far, p.y - far + 4}, p, true}, label{point{p.x - far - w, p.y + far + 4}, p, true})
		}
	}
	return found
}

// clutter says how much a label would cover of curves, given as dots, and how
// near others it would stand: a label between two curves says less than one that
// stands free.
func clutter(b box, l label, own int, dots [][]point, taken []box) (cost float64) {
	for _, t := range taken {
		if b.overlaps(t) {
			cost += 10_000
		}
	}
	if l.led {
		cost += 60
	}
	const margin = 12
	mine, others := math.Inf(1), math.Inf(1)
	for j, c := range dots {
		for _, p := range c {
			if l.led && j != own && math.Hypot(p.x-l.to.x, p.y-l.to.y) < margin {
				cost += 50 // the line leads to another curve, too
			}
			away := b.distance(p)
			switch {
			case away == 0:
				cost += 200
			case j == own:
				mine = min(mine, away)
			case away < margin:
				cost++
				fallthrough
			default:
				others = min(others, away)
			}
		}
	}
	if !l.led && others <= mine+2 {
		cost += 100 // it would be taken for the label of another
	}
	return cost
}

func (b box) overlaps(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// distance is how far p is from b, 0 within it.
func (b box) distance(p point) float64 {
	return math.Hypot(max(b.left-p.x, p.x-b.right, 0), max(b.top-p.y, p.y-b.bottom, 0))
}

// nearest is the point of b that is nearest to p.
func (b box) nearest(p point) point {
	return point{min(max(p.x, b.left), b.right), min(max(p.y, b.top), b.bottom)}
}

// walk returns points along a curve, about that far apart.
func walk(c []point, step float64) (points []point) {
	for i := 1; i < len(c); i++ {
		a, b := c[i-1], c[i]
		n := max(int(math.Hypot(b.x-a.x, b.y-a.y)/step), 1)
		for k := range n {
			t := float64(k) / float64(n)
			points = append(points, point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)})
		}
	}
	return append(points, c[len(c)-1])
}
