package systemd

import "golang.org/x/sys/unix"

// monotonic returns CLOCK_MONOTONIC in microseconds, by which systemd recognizes
// that a reload began after it had asked for it.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return t.Nano() / 1000
}
