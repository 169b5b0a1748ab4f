// Package browser walks the console of forbear serve in a browser.
package browser
