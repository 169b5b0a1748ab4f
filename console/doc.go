// Package console serves four pages about what retries are doing, and why.
package console
