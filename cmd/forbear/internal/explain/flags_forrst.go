package explain

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

// maxMessage bounds the file of a Forrst message.
const maxMessage = 1 << 20

// forrstFlags are the flags of explain that only Forrst has.
func forrstFlags(f *flag.FlagSet, s *Situation) {
	f.Func("message", "the Forrst response `envelope`, as JSON or as @FILE", func(v string) error {
		if name, ok := strings.CutPrefix(v, "@"); ok {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if len(data) > maxMessage {
				return fmt.Errorf("%s is longer than %d bytes", name, maxMessage)
			}
			v = string(data)
		}
		if json.Valid([]byte(v)) {
			s.Message = json.RawMessage(v)
			return nil
		}
		raw, err := json.Marshal(v) // no JSON: an answer all the same
		s.Message = raw
		return err
	})
	f.IntVar(&s.Phase, "phase", 0, "the phase of the Forrst migration, 1 to 3 (default 1)")
}
