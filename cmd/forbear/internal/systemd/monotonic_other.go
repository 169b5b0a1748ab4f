//go:build !linux

package systemd

// monotonic returns nothing of use: systemd runs on Linux alone.
func monotonic() int64 { return 0 }
