package policyfile

import _ "embed"

// SchemaURL is the $id of the schema, and the address that it is had from. It stays
// that of version 1 of the format: another version gets another.
const SchemaURL = "https://raw.githubusercontent.com/forbear-go/forbear/main/policyfile/schema.json"

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of a policy file, for editors. A test generates it
// from the types of this package (go test -update); the reader is stricter, since ranges
// depend on the kind.
func Schema() []byte { return schema }
