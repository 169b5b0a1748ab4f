module github.com/forbear-go/forbear/policyfile

go 1.26

require (
	github.com/forbear-go/forbear v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
)

require github.com/bmatcuk/doublestar/v4 v4.10.4
