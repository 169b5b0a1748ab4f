// Package chart holds the Helm chart of deploy/helm, and the Kustomize bases that are made
// from it, against what Kubernetes says of objects and what forbear says of its flags and
// policies. It has tests alone: make chart-check runs them, and make chart writes what is
// made from the chart and for it.
package chart
