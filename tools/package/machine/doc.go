// Package machine holds tests that install forbear on a machine of their own: Debian's
// packages unpacked into a folder, whose systemd runs in namespaces. They need root and
// mmdebstrap, and no container engine.
package machine
