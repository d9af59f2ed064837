#!/bin/sh
# in-root.sh ROOT FOLDER COMMAND…: runs a command in a Debian of its own, as root, in mount and
# process namespaces that end with it. Used by `hil test --only systems`.
#   HIL_BIND    lines of "FOLDER HERE<tab>FOLDER THERE": also visible there; with "-" in front read-only
#   HIL_USER    who runs the command (root, unless said)
#   HIL_OFFLINE not empty: without a network
# Everything else of the environment is handed on.
set -eu
exec unshare --mount --pid --fork --kill-child ${HIL_OFFLINE:+--net} sh -euc '
  root=$1 folder=$2
  shift 2
  mount --make-rprivate /
  mount --bind "$root" "$root" # pivot_root wants a mount
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  tab=$(printf "\t")
  echo "${HIL_BIND:-}" | while IFS=$tab read -r here there; do
    [ -n "$here" ] || continue
    mkdir -p "$root$there"
    mount --bind "${here#-}" "$root$there"
    case $here in -*) mount -o remount,ro,bind "$root$there" ;; esac
  done
  mkdir -p "$root/mnt/outside"
  cd "$root"
  pivot_root . mnt/outside
  umount -l mnt/outside
  cd "$folder"
  if [ "${HIL_USER:-root}" = root ]; then
    HOME=/root exec "$@"
  fi
  exec setpriv --reuid "$HIL_USER" --regid "$HIL_USER" --init-groups \
    env HOME="/home/$HIL_USER" USER="$HIL_USER" "$@"
' in-root "$@"
