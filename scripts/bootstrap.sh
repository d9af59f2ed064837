#!/bin/sh
# Makes the environment for ./hil: system packages, a virtual environment, torch (CPU only), the
# project. Called by ./hil with its folder, the environment's, what for (`run`; `dev`: the harness's
# own tests too), and a release of ExecuTorch instead of the pinned one, or of Vela (vela-5.2.0), or "",
# when there is none or it is older than the files it is made from.
set -eu
root=$1
venv=$2
purpose=$3
release=${4:-}
torch_version=2.13.0
case $venv in
  "$root"/*) state=$root/.hil ;;
  *) state=${venv%/*} ;;
esac
log=$state/bootstrap.log

. "$root/scripts/steps.sh"

writable() { { mkdir -p "$1" && [ -w "$1" ]; } 2>/dev/null; }
writable "$state" || die "$state cannot be written" \
  "where the clone cannot be written, set XDG_CACHE_HOME to a folder that can be"

# One bootstrap at a time; the others wait for it.
if [ "${HIL_BOOTSTRAP_LOCKED:-}" != 1 ] && command -v flock >/dev/null 2>&1; then
  HIL_BOOTSTRAP_LOCKED=1
  export HIL_BOOTSTRAP_LOCKED
  # -o: not the children, a ticker of which may live a few seconds longer
  exec flock -o "$state/bootstrap.lock" sh "$0" "$@"
fi
# As in ./hil, $1: the purpose.
stamped() {
  echo "$root"
  cat -- "$root/hil" "$root/pyproject.toml" "$root/docker/packages.txt" \
    "$root/scripts/bootstrap.sh" "$root/scripts/install-packages.sh" "$root/scripts/steps.sh" \
    "$root/scripts/$1.lock"
}
if whole "$venv" && stamped "$purpose" | cmp -s - "$venv/.hil-stamp-$purpose" 2>/dev/null; then
  exit 0
fi
: >"$log"
if [ -f "$venv/.hil-names" ] && ! whole "$venv"; then
  say "${venv##*/} is damaged: its Python or a package is gone; making it again"
  rm -rf "$venv"
fi

# --- Python, and the system packages --------------------------------------------------------
# What a target with Linux or a checkout of ExecuTorch needs comes when one is first used
# (harness/system/packages.py).
case $purpose in
  dev) purposes="run linux executorch dev" ;;
  *) purposes=run ;;
esac
# $1: its log; $2: a pattern of their names.
packages() {
  # shellcheck disable=SC2086
  sh "$root/scripts/install-packages.sh" "$root" "$1" "$2" $purposes
}
usable() {
  "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
    >/dev/null 2>&1
}
# A distribution builds its Python with profiles (PGO); pyenv's default and others do not, and a
# suite then takes about a tenth longer.
if ! usable "${HIL_PYTHON:-/usr/bin/python3}" && [ "${HIL_NO_SYSTEM_PACKAGES:-}" != 1 ] &&
  command -v apt-get >/dev/null 2>&1; then
  packages "$log" '^(python3|ca-certificates)'
fi
# apt works beside pip, unless it would ask for a password; this script ends no sooner than apt.
beside=
if [ "$(id -u)" -eq 0 ] || sudo -n true >/dev/null 2>&1; then
  packages "$state/packages.log" . &
  beside=$!
  trap 'wait "$beside" || :' EXIT
else
  packages "$log" .
fi
if [ -n "${HIL_PYTHON:-}" ] && ! usable "$HIL_PYTHON"; then
  say "HIL_PYTHON=$HIL_PYTHON is not a Python 3.10 to 3.13 with venv and ensurepip; taking another"
fi
python=
for candidate in "${HIL_PYTHON:-/usr/bin/python3}" /usr/bin/python3 python3 python3.11 python3.12 \
  python3.13 python3.10; do
  if usable "$candidate"; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || die "no Python 3.10 to 3.13 with venv and ensurepip was found" \
  "install python3 and python3-venv, or name one with HIL_PYTHON=/path/to/python3"
# The .venv of a copied checkout has the original's paths in it; the stamp's first line says whose
# it is.
made_for=$(cat "$venv/.hil-stamp-run" "$venv/.hil-stamp" 2>/dev/null | sed -n 1p)
if [ -n "$made_for" ] && [ "$made_for" != "$root" ]; then
  say "the environment here was made for $made_for; making one for this folder"
  rm -rf "$venv"
fi
if [ ! -x "$venv/bin/python" ] || ! usable "$venv/bin/python"; then
  rm -rf "$venv"
  step "making ${venv##*/} with $("$python" --version)" "$python" -m venv "$venv"
fi
# Python compiles a module when it is first imported: a sixth of them ever are.
pip_install() {
  "$venv/bin/python" -m pip --disable-pip-version-check install --no-compile "$@"
}

# --- all but torch, each version with its hash -------------------------------------------
# First a current pip (Debian 12's, of 2023, takes a third longer), and setuptools: two packages are
# published as source only, and are built with what is locked.
sed -nE '/^(pip|setuptools)==/,/[^\\]$/p' "$root/scripts/$purpose.lock" >"$state/pip.lock"
step "installing pip" pip_install --require-hashes --no-deps -r "$state/pip.lock"
step "installing the Python packages of scripts/$purpose.lock" \
  pip_install --require-hashes --no-deps --no-build-isolation -r "$root/scripts/$purpose.lock"

# --- another release of ExecuTorch, or of Vela -----------------------------------------------
# With what it asks for of the compilers, and the torch that it was built with, which is the oldest
# that it takes; the rest fits as it is locked.
wanted_by_release() {
  "$venv/bin/python" - "$1" <<'PY'
import importlib.metadata as m, re, sys
for wanted in m.requires("executorch"):
    name, version = re.match(r"([\w.-]+)([^;]*)", wanted).groups()
    if sys.argv[1] == "torch" and name == "torch":
        print(re.search(r"[0-9.]+[0-9]", version)[0])
    elif sys.argv[1] == "others" and "vgf" not in wanted:
        if name in ("torchao", "ethos-u-vela", "tosa-tools", "ml_dtypes"):
            print(name + version.replace(" ", ""))
PY
}
case $release in
  vela-*)
    step "installing Vela ${release#vela-}" pip_install --no-deps "ethos-u-vela==${release#vela-}"
    ;;
  ?*)
    step "installing ExecuTorch $release" pip_install --no-deps "executorch==$release"
    # shellcheck disable=SC2046
    step "installing its compilers" pip_install --no-deps $(wanted_by_release others)
    torch=$(wanted_by_release torch)
    torch_version=${torch:-$torch_version}
    ;;
esac

# --- torch, CPU only ---------------------------------------------------------------------
has_torch() {
  "$venv/bin/python" -c "
import importlib.metadata as m, sys
sys.exit(m.version('torch').split('+')[0] != '$torch_version')" >/dev/null 2>&1
}
# True when pip would fetch no CUDA packages with the torch it found.
only_cpu() {
  "$venv/bin/python" - "$1" <<'PY'
import json, sys
names = [i["metadata"]["name"].lower() for i in json.load(open(sys.argv[1]))["install"]]
sys.exit(any(n.startswith(("nvidia-", "cuda-")) or n == "triton" for n in names))
PY
}
if ! has_torch; then
  cpu_index=https://download.pytorch.org/whl/cpu
  if "$venv/bin/python" -c "
import urllib.request as u
u.urlopen('$cpu_index/torch/', timeout=5).read(1)" >/dev/null 2>&1; then
    step "installing torch $torch_version (CPU build)" \
      pip_install --no-deps --index-url "$cpu_index" "torch==$torch_version+cpu"
  else
    report=$state/torch-plan.json
    step "asking pip what torch $torch_version would bring" \
      pip_install --dry-run --report "$report" "torch==$torch_version"
    only_cpu "$report" ||
      die "pip would install torch $torch_version with several gigabytes of CUDA packages" \
        "PyTorch's CPU index ($cpu_index) cannot be reached from here." \
        "Fetch a CPU wheel of torch $torch_version where it can be, into a folder of its own, and" \
        "run PIP_FIND_LINKS=/that/folder ./hil doctor"
    step "installing torch $torch_version (CPU build)" pip_install --no-deps "torch==$torch_version"
  fi
  has_torch || die "after the installation torch is not $torch_version" "see $log"
fi

# --- the project -------------------------------------------------------------------------
step "installing the project" pip_install --no-deps --no-build-isolation -e "$root"
# With PYTHONDONTWRITEBYTECODE, which images often set, each export would compile them anew: 7 s.
import_once() {
  env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -c \
    "import harness.cli.run, harness.export.child.worker" || : # an old ExecuTorch may lack some
}
[ -z "$beside" ] || wait "$beside" || exit # it has said why
[ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || step "compiling the modules that a run imports" import_once
# The names that the environment's folder has, but those that change with a version.
(cd "$venv"/lib/python3*/site-packages && ls | grep -v '\.dist-info$\|^__pycache__$\|^~') \
  >"$venv/.hil-names" 2>/dev/null || :
for held in run "$purpose"; do stamped "$held" >"$venv/.hil-stamp-$held"; done
say "ready"
