package lsp

// The part of the protocol that is spoken here. Fields that are not read are left
// out; those of the client's that are not known are ignored.

// position is a place in a document. Both count from 0, Character in UTF-16 code
// units.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// span is a range; End is the first position behind it.
type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type documentParams struct {
	TextDocument struct {
		URI string `json:"uri"`
	} `json:"textDocument"`
}

type positionParams struct {
	documentParams
	Position position `json:"position"`
}

type didOpen struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

type didChange struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []struct {
		Range *span  `json:"range"` // of a part, which we do not ask for
		Text  string `json:"text"`
	} `json:"contentChanges"`
}

// source names us beside each diagnostic.
const source = "forbear"

const (
	severityError       = 1
	severityWarning     = 2
	severityInformation = 3
)

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Code     string `json:"code,omitzero"`
	Source   string `json:"source"`
	Message  string `json:"message"`
}

// published are the diagnostics of a document: all that there are, each time.
type published struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version,omitzero"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

// markup is a text in Markdown.
type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

type hover struct {
	Contents markup `json:"contents"`
	Range    *span  `json:"range,omitzero"`
}

const (
	itemProperty = 10
	itemValue    = 12
)

type item struct {
	Label         string  `json:"label"`
	Kind          int     `json:"kind"`
	Detail        string  `json:"detail,omitzero"`
	Documentation *markup `json:"documentation,omitzero"`
	TextEdit      edit    `json:"textEdit"`
}

type edit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

// capabilities is the response to initialize.
func (s *server) capabilities() any {
	type m = map[string]any
	const full = 1 // each change brings the whole text
	return m{
		"capabilities": m{
			"positionEncoding":   "utf-16",
			"textDocumentSync":   m{"openClose": true, "change": full},
			"hoverProvider":      true,
			"completionProvider": m{"triggerCharacters": []string{":", " ", "{"}},
		},
		"serverInfo": m{"name": source, "version": s.options.Version},
	}
}
