// Package waitform has the words for the forms in which headers tell a wait, as
// forbear.Policy.WaitHeaders explains them.
package waitform

// The forms.
const (
	Auto         = "auto"
	Seconds      = "seconds"
	Milliseconds = "milliseconds"
	HTTPDate     = "http-date"
	Unix         = "unix"
	RFC3339      = "rfc3339"
	Duration     = "duration"
)

// Names are all of them.
var Names = []string{Auto, Seconds, Milliseconds, HTTPDate, Unix, RFC3339, Duration}
