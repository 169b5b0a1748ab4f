package policyfile

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

// Version is the version of the format that this package reads, and that of a file
// which names none.
const Version = 1

// version reads the version of the file ahead of everything else. Of another
// version it is the only fault: what that version has besides would be one each,
// and bury the reason.
func (d *decoder) version(f *File, root *yaml.Node) (ok bool) {
	root = strict.Resolve(root)
	if root.Kind != yaml.MappingNode {
		return true // which file says
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if strict.Resolve(root.Content[i]).Value != "version" {
			continue
		}
		v := strict.Resolve(root.Content[i+1])
		want := strconv.Itoa(Version)
		switch s, ok := d.Scalar(v, "version", want); {
		case !ok:
			return false
		case s != want:
			d.Fault(v, "version is %s: this forbear reads version %s", strict.Quote(s), want)
			return false
		}
		f.Version = Version
	}
	return true
}
