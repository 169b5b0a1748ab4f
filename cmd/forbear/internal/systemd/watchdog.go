package systemd

import (
	"os"
	"strconv"
	"time"
)

// Watchdog returns how often systemd wants to hear that the process works
// (WatchdogSec=); 0 is never. heir is whether this process has taken another one's
// place: the environment names that one then, and means this one.
func (n *Notifier) Watchdog(heir bool) time.Duration {
	if !n.On() {
		return 0
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) && !heir {
		return 0
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

// Alive says that the process works. Where systemd does not hear it for the time of
// [Notifier.Watchdog], it ends the process and starts another.
func (n *Notifier) Alive() error { return n.send("WATCHDOG=1") }
