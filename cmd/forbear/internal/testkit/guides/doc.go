// Package guides has the tests that run the commands of the guides and of the README as
// they are printed, and check the policies that these show.
package guides
