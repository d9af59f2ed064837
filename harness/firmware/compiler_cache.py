"""Equal compilations are made once, whatever the tree: ccache in front of the compilers, where
there is one. It is no part of what decides a build: code and data are the same with and without it.
Debug information names the tree's own headers otherwise, so that the build id may differ.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.system import paths, toolchain


def launchers(*languages: str) -> dict[str, str]:
    """CMake's options for the languages of a project; none where there is no ccache."""
    found = toolchain.find("ccache")
    return {
        f"CMAKE_{language}_COMPILER_LAUNCHER": str(found.path)
        for language in languages
        if found is not None
    }


def environment(tree: Path) -> dict[str, str]:
    """What ccache is told: ``tree``, where the build is, does not count (BASEDIR), nor does the
    current directory (NOHASHDIR), which the compilers are told to leave out. ``$CCACHE_DIR`` names
    another place for what it keeps."""
    return {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR") or str(paths.cache_dir("ccache")),
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
    }
