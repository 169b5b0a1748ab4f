package report

// ProblemKind says what kept a file from being judged.
type ProblemKind string

// The kinds of problems.
const (
	Unread       ProblemKind = "unread"       // it could not be read or parsed
	Unrecognized ProblemKind = "unrecognized" // no reader knows what it is
	Faulty       ProblemKind = "faulty"       // a part of it makes no sense; the rest was judged
)

// Problem is a file, or a place in one, that could not be judged.
type Problem struct {
	Kind    ProblemKind `json:"kind"`
	File    string      `json:"file"`
	Line    int         `json:"line,omitzero"`
	Column  int         `json:"column,omitzero"`
	Message string      `json:"message"`
	// Fatal says that the run does not pass.
	Fatal bool `json:"fatal"`
}
