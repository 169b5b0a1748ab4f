//go:build linux && !386

package tcpstate

import (
	"syscall"
	"time"
	"unsafe"
)

// quiet is tcpi_last_data_recv of TCP_INFO (tcp(7)).
func quiet(fd uintptr) (time.Duration, bool) {
	var info syscall.TCPInfo
	size := uint32(syscall.SizeofTCPInfo)
	_, _, errno := syscall.Syscall6(
		syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0,
	)
	return time.Duration(info.Last_data_recv) * time.Millisecond, errno == 0 && size == syscall.SizeofTCPInfo
}
