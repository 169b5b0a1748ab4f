package policyfile

import (
	"strconv"

	"go.yaml.in/yaml/v4"
)

// Version is the version of the format that this package reads, and that of a file
// which names none.
const Version = 1

// version reads the version of the file ahead of everything else. Of another
// version it is the only fault: what that version has besides would be one each,
// and bury the reason.
func (d *decoder) version(f *File, root *yaml.Node) (ok bool) {
	root = resolve(root)
	if root.Kind != yaml.MappingNode {
		return true // which file says
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if resolve(root.Content[i]).Value != "version" {
			continue
		}
		v := resolve(root.Content[i+1])
		want := strconv.Itoa(Version)
		switch s, ok := d.scalar(v, "version", want); {
		case !ok:
			return false
		case s != want:
			d.fault(v, "", "version is %s: this forbear reads version %s", quote(s), want)
			return false
		}
		f.Version = Version
	}
	return true
}
