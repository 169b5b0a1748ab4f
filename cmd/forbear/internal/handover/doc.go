// Package handover opens the sockets that a process listens on, and puts a new process in
// its place without a connection lost: the running process starts the new one with its
// sockets, and stops accepting when that is ready. The kernel keeps the queue of a socket
// that is passed on. A new process that does not get so far changes nothing.
//
// Only the process that listens can pass its sockets on, so it starts its successor itself.
// But those who started the first process wait for that one: a shell, a container, a
// supervisor. Unless systemd is there, which follows the main process to another number, the
// first process therefore stays when it has drained, passes signals on, and exits as the
// last of its successors did.
//
// It is written by hand, since github.com/cloudflare/tableflip cannot do that: it starts
// nothing while an earlier process is still there, which one that drains or stays is. Nor
// does it tell the number of the new process, for signals and systemd, or why that failed,
// or keep the new process out of the group that signals are passed to; and it has no check
// whether another process listens on a unix socket.
//
//   - predecessor.go, successor.go: the process before this one, and the one after it
//   - sockets.go: addresses and sockets
//   - unixsocket.go: sockets in the file system, which outlive their process
//   - passed.go: sockets that systemd or another forbear passes
package handover
