//go:build ablate

package ablate

import "os"

// On reports whether a part is on: all are but the one that the environment names.
func On(part string) bool { return os.Getenv("FORBEAR_LINT_WITHOUT") != part }
