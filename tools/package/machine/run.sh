#!/bin/sh
# Runs a program in the unpacked image ROOT, in namespaces of its own, as a container
# engine would with a read-only root: run.sh ROOT VOLUME UID:GID PROGRAM ARGS...
set -eu
root=$1 volume=$2 user=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$volume" "$root/var/lib/forbear"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
FORBEAR_MACHINE_ROLE=loopback "$SELF"
unset SELF
cd "$root"
exec /usr/sbin/chroot --userspec="$user" --groups= "$root" "$@"
