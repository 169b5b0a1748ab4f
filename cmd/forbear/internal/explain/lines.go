package explain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest situation that is read, in bytes. It bounds the memory
// that one line can take, whatever is piped in.
const MaxLine = 1 << 20

// refusal stands for a situation that cannot be judged. ID is empty when the
// line was too broken to hold one. The order of the lines still tells which it was.
type refusal struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Lines judges one situation a line, in their order. A line that cannot be
// judged gets its error as the result, and bad counts it. Empty lines are
// passed over. err is a failure of r or w. Memory is bounded by [MaxLine] however
// long the input is, and a program may use it as a filter that stays open: a result
// is flushed as soon as no more input waits.
func Lines(r io.Reader, w io.Writer) (bad int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for number := 1; ; number++ {
		line, tooLong, readErr := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 || tooLong {
			result, ok := judgeLine(line, number, tooLong)
			if !ok {
				bad++
			}
			if err := enc.Encode(result); err != nil {
				return bad, err
			}
		}
		if in.Buffered() == 0 || readErr != nil {
			// A program that waits for this result before its next situation has
			// it. While more situations are waiting, results are written in blocks.
			if err := out.Flush(); err != nil {
				return bad, err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return bad, nil
		}
		if readErr != nil {
			return bad, readErr
		}
	}
}

// judgeLine judges one line. Every fault becomes a result: the lines of output
// stay as many as the situations. The id is kept wherever it could be read.
func judgeLine(line []byte, number int, tooLong bool) (result any, ok bool) {
	if tooLong {
		return refusal{Error: fmt.Sprintf("line %d is longer than %d bytes", number, MaxLine)}, false
	}
	s, err := Decode(line)
	if err != nil {
		return refusal{s.ID, err.Error()}, false
	}
	x, err := Explain(s)
	if err != nil {
		return refusal{s.ID, err.Error()}, false
	}
	return x.Verdict, true
}

// readLine reads up to the next line feed. Of a line that is too long it keeps
// nothing, and reads on to its end, so that the next line is judged by itself.
// bufio.Scanner would stop for good at a line that is too long, and the lines behind
// it would have no results.
//
// The line feed counts for the limit, hence the one byte more.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > MaxLine+1; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
