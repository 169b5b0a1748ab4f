// Package only has the keys to what a package exports for one other package of this
// project. A method that asks for such a key cannot be called from outside.
package only

// Edge is the key of package edge to the engine in package forbear.
type Edge struct{}
