// Package report draws what a simulation has to show: numbers and sparklines for a
// terminal, CSV, charts as SVG, and a page of HTML that holds them.
//
// It knows nothing of retries. Package storm says what is shown, under which names
// and on which scale; this package knows how wide a line is, what a gap in a series
// looks like, and where the pixels are. Outputs are made of the input alone: the same
// numbers give the same bytes, which golden files rely on.
//
// Titles are escaped. Names, labels and hints are the program's own and are not.
package report
