//go:build !race

package forbear_test

const raced = false
