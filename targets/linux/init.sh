#!/bin/sh
# The first program of the guest: what is missing to a login, and where the run's files are.
busybox mkdir -p /proc /sys /dev /work
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
busybox --install -s /bin
hostname -F /etc/hostname
while read -r module; do insmod "/lib/modules/$module"; done </etc/modules
sysctl -q -p /etc/sysctl.conf
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=262144 work /work
