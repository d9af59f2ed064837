#!/bin/sh
# The first program of the stand-in's guest: its network, its ssh server and its memory card, as an
# image of meta-arm has them. "double=..." of the kernel's command line says what goes wrong.
busybox mkdir -p /proc /sys /dev /var/run /var/log /run/media/mmcblk0 /etc/dropbear
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
busybox --install -s /bin
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
hostname -F /etc/hostname
while read -r module; do insmod "/lib/modules/$module"; done </etc/modules
sysctl -q -p /etc/sysctl.conf
ifconfig lo up
ifconfig eth0 10.0.2.15 up
if [ -b /dev/vda ]; then mount -t vfat /dev/vda /run/media/mmcblk0; fi
case $(cat /proc/cmdline) in
  *double=panic*) echo c >/proc/sysrq-trigger ;;
  *double=no_login*) sleep 1000 ;;
  *double=no_ssh*) ;;
  *) /usr/sbin/dropbear -R -B ;;
esac
