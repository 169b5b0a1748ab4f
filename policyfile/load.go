package policyfile

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
)

// MaxSize is the largest policy file that is read, in bytes.
const MaxSize = 4 << 20

// Load reads the file at path. Its faults come as an [*Error].
func Load(path string) (*File, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Preview reads the file at path as [Load] does, for tools that read a policy and
// call nothing: {env: NAME} in the place of an address need not be set, and stands
// for one that reaches no one. Waivers apply.
func Preview(path string) (*File, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return ParsePreview(path, data)
}

// ParsePreview reads data as [Preview] reads a file; name stands for it in faults.
func ParsePreview(name string, data []byte) (*File, error) {
	d := newDecoder(name, time.Now())
	d.elsewhere = true
	return d.parse(data)
}

// Read returns the contents of a file. It reads at most one byte more than
// [MaxSize], which is enough for [Parse] to refuse the file.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A limit instead of the file's size: a pipe has none.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the policy file: %w", err)
	}
	return data, nil
}

// Parse reads data, which name stands for in faults. The faults come all at
// once, as an [*Error].
func Parse(name string, data []byte) (*File, error) {
	return parse(name, data, time.Now())
}

// parse is Parse at a given time: tests set it, since waivers expire.
func parse(name string, data []byte, now time.Time) (*File, error) {
	return newDecoder(name, now).parse(data)
}

// parse returns a file without faults.
func (d *decoder) parse(data []byte) (*File, error) {
	f := d.read(data)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// Inspect reads data as [Parse] does, for tools that judge a file and do not
// run by it. What leaves the standard but can be read is no fault of the
// file: it is returned in refused, each with its rule, and waivers are not
// applied. err holds the other faults; f and refused are what could be read all
// the same.
func Inspect(name string, data []byte) (f *File, refused []*Fault, err error) {
	d := newDecoder(name, time.Now())
	d.inspect, d.elsewhere = true, true
	f = d.read(data)
	var rest []*Fault
	for _, fault := range d.Faults {
		// A rule marks what can be read and may be waived; the rest cannot
		// be judged.
		if fault.Rule != "" {
			refused = append(refused, fault)
		} else {
			rest = append(rest, fault)
		}
	}
	d.Faults = rest
	return f, refused, d.Err()
}

// read returns a file even after faults, as far as it could be read; the
// caller decides whether it may be used.
func (d *decoder) read(data []byte) *File {
	f := &File{Name: d.Name, places: map[string]Position{}}
	if root := d.Document(data, MaxSize); root != nil {
		d.file(f, root)
	}
	f.order = map[string]int{}
	for i, dep := range slices.Backward(f.All()) { // of equals the first
		f.order[dep.Name] = i
	}
	f.Deprecated = d.deprecated
	return f
}

// ParsePolicy reads the policy fields of one dependency, as YAML or JSON, on top
// of base. Fields that data does not mention keep base's value, unless data
// extends a built-in profile, which then replaces all of base but its kind. The
// faults come as an [*Error]. base is not changed.
func ParsePolicy(name string, data []byte, base forbear.Policy) (forbear.Policy, error) {
	d := newDecoder(name, time.Now())
	if root := d.Document(data, MaxSize); root != nil {
		l := d.layer(root, name, layer{policy: base})
		// No waiver applies here: there is no file that could hold one.
		d.judge(l, name)
		base = l.policy
	}
	return base, d.Err()
}
