#!/bin/sh
# Boots the systemd of a root file system in namespaces of its own: boot.sh ROOT GROUP.
# It is to be run as root, in a mount namespace. Ends with the systemd.
set -eu
root=$1 group=$2
mount --make-rprivate /
mount --bind "$root" "$root"
# A group below this process's own is all that the systemd sees of the groups.
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" 2>/dev/null || {
	mkdir -p "$root/sys/fs/cgroup"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
}
mkdir -p "$root/sys/fs/cgroup/$group"
echo $$ >"$root/sys/fs/cgroup/$group/cgroup.procs"
umount "$root/sys/fs/cgroup"
exec unshare --mount --pid --fork --kill-child --uts --ipc --cgroup --net sh -eu -c '
root=$1
cd "$root"
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for d in null zero full random urandom tty; do
	: >dev/$d
	mount --bind /dev/$d dev/$d
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
hostname machine
exec env -i container=ns PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --log-target=journal --show-status=no
' sh "$root"
