#!/bin/sh
# Installs the system packages of docker/packages.txt for some purposes, those whose names match an
# extended regular expression:
#   install-packages.sh PROJECT LOG NAMES PURPOSE...
# Called by bootstrap.sh, and by the harness when a target first needs more. With
# HIL_NO_SYSTEM_PACKAGES=1 it only names what is missing.
set -eu
root=$1
log=$2
names=$3
shift 3
purposes=$*
. "$root/scripts/steps.sh"

# $1: the column of this system.
listed() {
  awk -v column="$1" -v purposes=" $purposes " -v names="$names" '
    /^#/ || NF == 0 || $column == "-" || $column !~ names { next }
    index(purposes, " " $1 " ") { print $column }
  ' "$root/docker/packages.txt" | sort -u
}
is_like() {
  grep -Eqs "^ID(_LIKE)?=.*\\b$1\\b" /etc/os-release
}
if command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
  column=2
  if is_like ubuntu; then column=3; fi
  missing=
  for package in $(listed $column); do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' ||
      missing="$missing $package"
  done
  if [ -n "$missing" ] && [ "${HIL_NO_SYSTEM_PACKAGES:-}" = 1 ]; then
    say "these system packages are missing and HIL_NO_SYSTEM_PACKAGES=1:$missing"
  elif [ -n "$missing" ]; then
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
      command -v sudo >/dev/null 2>&1 ||
        die "system packages are missing and there is no sudo; as root run:" \
          "apt-get install --no-install-recommends$missing"
      as_root=sudo
    fi
    say "system packages to install:$missing"
    step "apt-get update" $as_root apt-get update
    # shellcheck disable=SC2086
    step "apt-get install" $as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends $missing
  fi
elif is_like fedora; then
  # shellcheck disable=SC2046
  say "no apt here; what is needed comes by: dnf install" $(listed 4)
else
  say "no apt here: install the equivalents of these Debian packages by hand:"
  for package in $(listed 2); do printf '       %s\n' "$package"; done
fi
