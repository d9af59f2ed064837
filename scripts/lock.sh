#!/bin/sh
# Writes scripts/run.lock and scripts/dev.lock: each Python package with its version and hashes, for
# Linux and every Python that we run on. Needs uv (`pip install uv`); `lock.sh --upgrade` takes
# newer versions where pyproject.toml allows them.
#
# torch itself is not in them, because its build for CPUs comes from PyTorch's own index
# (bootstrap.sh); what it needs is. The editable install is built by what is in them, too.
set -eu
cd "$(dirname -- "$0")/.."
without=$(mktemp)
trap 'rm -f "$without"' EXIT
echo 'torch; sys_platform == "never"' >"$without"

compile() {
  purpose=$1
  shift
  printf '%s\n' pip editables hatch-vcs hatchling \
    filelock fsspec jinja2 networkx setuptools sympy typing-extensions |
    uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate \
      --overrides "$without" --custom-compile-command "scripts/lock.sh" --no-emit-package torch \
      --output-file "scripts/$purpose.lock" "$@" pyproject.toml -
}
compile dev --extra export --extra nightly --extra dev "$@"
compile run --extra export --extra nightly --constraints scripts/dev.lock "$@"
