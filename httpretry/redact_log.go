package httpretry

import (
	"bytes"
	"io"
)

// RedactLog returns a writer for [log.SetOutput] that writes to w. net/http has no
// logger but that of package log, and when a server says something out of turn on an
// idle connection, it prints there what was said. Such a line is passed on without
// it; every other one as it is. The writer is as safe for concurrent use as w.
//
//	log.SetOutput(httpretry.RedactLog(os.Stderr))
func RedactLog(w io.Writer) io.Writer { return redactedLog{w} }

type redactedLog struct{ io.Writer }

// unsolicited is how net/http begins to say so.
var unsolicited = []byte("Unsolicited response received on idle HTTP channel")

// Write gets a whole line, as package log promises.
func (l redactedLog) Write(line []byte) (int, error) {
	at := bytes.Index(line, unsolicited)
	if at < 0 {
		return l.Writer.Write(line)
	}
	short := append(bytes.Clone(line[:at+len(unsolicited)]), " [redacted]\n"...)
	if _, err := l.Writer.Write(short); err != nil {
		return 0, err
	}
	return len(line), nil
}
