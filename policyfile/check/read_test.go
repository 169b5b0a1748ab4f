package check

import "testing"

// Most programs that are met hold no settings, and are nothing that was left unread; one
// that is named is.
func TestProgramsThatAreMet(t *testing.T) {
	for _, tt := range []struct {
		text  string
		met   bool
		files int
		fault bool
	}{
		{"a = f'{{b}}' # retry\n", true, 0, false},
		{"a = 1\n", false, 0, true},
		{"CELERY_TASK_PUBLISH_RETRY = False\n", true, 0, true},
	} {
		read := ReadAll([]Input{{Name: "settings.py", Data: []byte(tt.text), Met: tt.met}})
		if read.Files != tt.files || (len(read.Problems) > 0) != tt.fault {
			t.Errorf("%q: got %d files, %v", tt.text, read.Files, read.Problems)
		}
	}
}
