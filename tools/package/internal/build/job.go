package build

import (
	"flag"
	"log"
	"path/filepath"
	"regexp"
	"strings"
)

// Job is what a command of this module is to make, as its flags say.
type Job struct {
	Root      string // the folder of the source
	Dist      string // the folder of what is given out
	Tools     string // the folder with cyclonedx-gomod and nfpm
	Version   string // without its v
	Platforms []Platform
}

// version is what packages can be sorted by; git describe's are such, too.
var version = regexp.MustCompile(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// Main reads the flags of a command and runs it.
func Main(command string, run func(Job) error) {
	log.SetFlags(0)
	log.SetPrefix(command + ": ")
	var j Job
	flag.StringVar(&j.Root, "root", "../..", "the `folder` of the source")
	flag.StringVar(&j.Dist, "dist", "../../bin/dist", "the `folder` of what is given out")
	flag.StringVar(&j.Tools, "tools", "../../bin/package", "the `folder` with cyclonedx-gomod and nfpm")
	given := flag.String("version", "0.0.0-dev", "the `version`, with or without its v")
	only := flag.String("only", "", "one `platform`, such as linux_amd64")
	flag.Parse()
	if j.Version = strings.TrimPrefix(*given, "v"); !version.MatchString(j.Version) {
		log.Fatalf("%q is not a version: want one like v0.1.0", *given)
	}
	var err error
	for _, path := range []*string{&j.Root, &j.Dist, &j.Tools} {
		if *path, err = filepath.Abs(*path); err != nil {
			log.Fatal(err)
		}
	}
	if j.Platforms, err = Chosen(*only); err == nil {
		err = run(j)
	}
	if err != nil {
		log.Fatal(err)
	}
}
