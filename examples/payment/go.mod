module github.com/forbear-go/forbear/examples/payment

go 1.26

require (
	github.com/forbear-go/forbear v0.0.0
	github.com/forbear-go/forbear/policyfile v0.0.0
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/hashicorp/hcl v1.0.0 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
)
