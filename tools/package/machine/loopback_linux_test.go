package machine

import (
	"syscall"
	"unsafe"
)

// loopback switches the loopback interface of this process's network on: a network that
// was just made has it off, and there is no ip(8) everywhere.
func loopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct { // struct ifreq
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
