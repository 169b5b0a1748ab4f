//go:build !unix

package check

import "time"

var begun = time.Now()

// spent is the time that has passed, where the system is not asked for more.
func spent() time.Duration { return time.Since(begun) }
