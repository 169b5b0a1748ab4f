package forrst

import "fmt"

// CodeError is the error of a failed call, which [forbear.Error] unwraps to.
// It holds the code and nothing else of the message: messages and details
// may carry personal data, and errors end up in logs.
type CodeError string

// Error returns "forrst error UNAVAILABLE".
func (e CodeError) Error() string { return "forrst error " + string(e) }

// codeError keeps a code from the wire within bounds: it becomes the text of
// an error, and a server may send anything.
func codeError(code string) error {
	if _, known := rows[code]; known {
		return CodeError(code)
	}
	if len(code) > 64 {
		code = code[:64]
	}
	for _, c := range code {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return fmt.Errorf("%w with an unreadable code", CodeError("other"))
		}
	}
	return CodeError(code)
}
