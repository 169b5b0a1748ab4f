// What policyfile/export writes, through the parsers of those it is written for. They
// need more than policy files do, which is why they are apart.
module github.com/forbear-go/forbear/policyfile/export/interop

go 1.26.0

require (
	github.com/envoyproxy/go-control-plane/envoy v1.40.0
	github.com/forbear-go/forbear v0.0.0
	github.com/forbear-go/forbear/policyfile v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	istio.io/api v1.31.4
)

require (
	cel.dev/expr v0.25.3 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)
