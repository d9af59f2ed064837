"""What a user's code reads is seen: files however opened, variables, and what lies beyond.

No torch: a file is executed as the exporter executes a model's.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.case.models import source_files
from harness.export.inputs import Inputs
from harness.export.watch import Watch

Reads = Callable[[str], Inputs]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "weights.pt").write_bytes(b"weights")
    return folder


@pytest.fixture
def reads(home: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    monkeypatch.setenv("HIL_HOME", str(home.parent / "state"))

    def execute(text: str) -> Inputs:
        file = home / "model.py"
        file.write_text(f"from pathlib import Path\nhere = Path(__file__).parent\n{text}\n")
        watch = Watch(file)
        code = compile(file.read_text(), str(file), "exec")
        with watch.listening():
            exec(code, {"__file__": str(file), "__name__": "model"})
        return watch.inputs(source_files(file))

    return execute


def names(inputs: Inputs) -> list[str]:
    return [Path(seen.path).name for seen in inputs.seen]


OPENING = {
    "builtin": "open(here / 'weights.pt').read()",
    "pathlib": "(here / 'weights.pt').read_bytes()",
    "descriptor": "import os; os.close(os.open(here / 'weights.pt', os.O_RDONLY))",
    "a package": "import numpy; numpy.fromfile(here / 'weights.pt', 'u1')",
    "memory": "import mmap; f = open(here / 'weights.pt', 'rb')\nmmap.mmap(f.fileno(), 0, prot=1)",
    "bytes": "import os; open(os.fsencode(here / 'weights.pt')).close()",
    "native code": "import ctypes; libc = ctypes.CDLL(None)\n"
    "libc.open(bytes(here / 'weights.pt'), 0)",
    "update": "open(here / 'weights.pt', 'r+').close()",
    "existence": "(here / 'weights.pt').exists()",
}


@pytest.mark.parametrize("how", OPENING)
def test_an_opened_file_is_seen(reads: Reads, home: Path, how: str) -> None:
    inputs = reads(OPENING[how])
    assert "weights.pt" in names(inputs)
    assert inputs.hold(str(home))
    (home / "weights.pt").write_bytes(b"WEIGHTS")
    assert not inputs.hold(str(home))


@pytest.mark.parametrize(
    "text",
    ["(here / 'later.pt').exists()", "import os; os.path.isfile(here / 'later.pt')",
     "try: open(here / 'later.pt')\nexcept OSError: pass"],
)  # fmt: skip
def test_what_was_looked_for_in_vain_is_seen(reads: Reads, home: Path, text: str) -> None:
    inputs = reads(text)
    assert inputs.hold(str(home))
    (home / "later.pt").touch()
    assert not inputs.hold(str(home))


@pytest.mark.parametrize("text", ["list(here.iterdir())", "list(here.glob('*.pt'))"])
def test_a_listed_folder_is_seen(reads: Reads, home: Path, text: str) -> None:
    inputs = reads(text)
    assert inputs.hold(str(home))
    (home / "more.pt").touch()
    assert not inputs.hold(str(home))


def test_its_own_source_is_in_the_key_already(reads: Reads, home: Path) -> None:
    """A model that reads nothing has nothing to be checked, whatever Python reads to import."""
    (home / "layers.py").write_text("size = 3\n")
    sys.path.insert(0, str(home))
    try:
        inputs = reads("import layers, json, email.mime.text, xml.dom.minidom")
    finally:
        sys.path.remove(str(home))
        sys.modules.pop("layers", None)
    assert inputs == Inputs(str(home))
    assert not inputs


def test_a_module_from_another_folder_is_seen(reads: Reads, home: Path, tmp_path: Path) -> None:
    """Imported now, or by somebody before."""
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "hil_far_layers.py").write_text("size = 3\n")
    sys.path.insert(0, str(lib))
    try:
        for _ in range(2):
            inputs = reads("import hil_far_layers")
            assert "hil_far_layers.py" in names(inputs)
    finally:
        sys.path.remove(str(lib))
        sys.modules.pop("hil_far_layers", None)
    (lib / "hil_far_layers.py").write_text("size = 4\n")
    assert not inputs.hold(str(home))


def test_what_it_made_itself_is_no_input(reads: Reads) -> None:
    inputs = reads(
        "(here / 'log.txt').write_text('x')\n(here / 'log.txt').read_text()\n"
        "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); open(f.name).read()\n"
        "f.close()"
    )
    assert names(inputs) == []


def test_variables(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_TEST_SIZE", "3")
    monkeypatch.setenv("HIL_TEST_UNREAD", "3")
    kind = type(os.environ)
    inputs = reads(
        "import os\nos.environ['HIL_TEST_SIZE']; os.getenv('HIL_TEST_ABSENT')\n"
        "'HIL_TEST_ASKED' in os.environ\n"
        "os.environ['HIL_TEST_OWN'] = '1'; os.environ.pop('HIL_TEST_OWN')"
    )
    assert type(os.environ) is kind
    assert [name for name, _ in inputs.variables] == [
        "HIL_TEST_ABSENT", "HIL_TEST_ASKED", "HIL_TEST_SIZE"
    ]  # fmt: skip
    assert inputs.hold("")
    monkeypatch.setenv("HIL_TEST_SIZE", "4")
    assert not inputs.hold("")


BEYOND = {
    "a process": ("import subprocess; subprocess.run(['true'])", "starts a process"),
    "a shell": ("import os; os.system('true')", "starts a process"),
    "a host": ("import socket; s = socket.socket()\ntry: s.connect(('127.0.0.1', PORT))\n"
               "finally: s.close()", "asks the network"),
    "all variables": ("import os; dict(os.environ)", "reads all of the environment"),
    "a device": ("open('/dev/urandom', 'rb').read(1)", "which is no file"),
    "a file that changes": ("open(here / 'weights.pt').read()\n"
                            "(here / 'w').write_text('other'); (here / 'w').replace(here / "
                            "'weights.pt')", "changed while it was read"),
}  # fmt: skip


@pytest.mark.parametrize("what", BEYOND)
def test_what_cannot_be_known_is_said(reads: Reads, what: str) -> None:
    text, said = BEYOND[what]
    with socket.create_server(("127.0.0.1", 0)) as server:
        inputs = reads(text.replace("PORT", str(server.getsockname()[1])))
    assert said in inputs.unknown


def test_what_a_package_does_when_it_is_imported_is_not_the_users(
    reads: Reads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at variables and files that decide nothing of a model."""
    package = tmp_path / "site"
    package.mkdir()
    (package / "hil_noisy.py").write_text(
        "import os, subprocess\nos.environ.get('HIL_TEST_NOISE')\nsubprocess.run(['true'])\n"
    )
    monkeypatch.setattr("site.getsitepackages", lambda: [str(package)])
    monkeypatch.syspath_prepend(str(package))
    assert not reads("import hil_noisy")


def test_what_others_do_meanwhile_is_not_the_users(reads: Reads, home: Path) -> None:
    """Firmware is built in other threads of the process."""
    (home.parent / "elsewhere").write_text("x")
    text = (
        "import threading\n"
        f"t = threading.Thread(target=lambda: open({str(home.parent / 'elsewhere')!r}).read())\n"
        "t.start(); t.join()"
    )
    assert not reads(text)


def test_a_model_of_the_wheel_is_not_watched() -> None:
    watch = Watch(None)
    with watch.listening():
        Path(__file__).read_text()
    assert not watch.inputs(())
