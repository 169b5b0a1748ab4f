// Package console walks the console of forbear serve in a browser.
package console
