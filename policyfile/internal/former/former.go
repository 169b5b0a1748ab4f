// Package former lists the keys of policy files that have another name by now. A key
// is read under both for one minor version. The former name is a warning in forbear
// check (FC004) and in the log of serve meanwhile, and then a fault as any other
// unknown key is.
package former

// Name is what became of a key.
type Name struct {
	// Instead is its name by now, in the same mapping.
	Instead string
	// Until is the version that refuses the former name, such as "v0.3.0".
	Until string
}

// Keys are the former names. Tests put one there.
var Keys = map[string]Name{}
