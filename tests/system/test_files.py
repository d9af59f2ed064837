"""Files that are written whole: what a killed, failing or concurrent writer leaves behind."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from harness.system.files import DiskError, disk_errors, sha256_of, whole_folder, write_whole


def test_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, "old, and longer\n")
    write_whole(path, b"new\n")
    assert path.read_bytes() == b"new\n"
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    """Another user's reader must be able to read it, as the umask says."""
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failing_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, really: /dev/full takes the place of the new file."""
    path = tmp_path / "a.json"
    path.write_text("old")
    real = Path.write_bytes

    def full(part: Path, data: bytes) -> int:
        real(part, data[:10])
        return real(Path("/dev/full"), data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new" * 10000)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "absent" / "a.json", "x")


# It writes for ever, and says when it began; each content is one letter, over and over.
WRITER = """
import sys
from pathlib import Path
from harness.system.files import DiskError, write_whole
print("on", flush=True)
while True:
    for letter in "ab":
        write_whole(Path(sys.argv[1]), letter * 4_000_000)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    """SIGKILL at many moments of a writer that never rests. Of the new file it may leave a part,
    under a hidden name."""
    path = tmp_path / "a.txt"
    for attempt in range(8):
        argv = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            while not path.exists():  # on a machine with other work the first one takes its time
                threading.Event().wait(0.01)
            threading.Event().wait(0.05 + 0.007 * attempt)
            writer.send_signal(signal.SIGKILL)
        content = path.read_text()
        assert len(content) == 4_000_000
        assert len(set(content)) == 1
    assert [name for name in os.listdir(tmp_path) if name[0] != "."] == ["a.txt"]


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    def write(letter: str) -> None:
        for _ in range(20):
            write_whole(path, letter * 100_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = path.read_text()
    assert (len(content), len(set(content))) == (100_000, 1)
    assert os.listdir(tmp_path) == ["a.txt"]


def test_sha256_of_more_than_one_piece(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(content)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_a_full_disk_is_infrastructure_with_a_way_out(tmp_path: Path) -> None:
    """Told with what was being done, the name of the error as data, and what helps."""
    with pytest.raises(DiskError) as caught, disk_errors("writing the record"):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "record.json"))
    assert caught.value.message.startswith("writing the record: No space left on device")
    assert caught.value.errno == "ENOSPC"
    assert caught.value.path == str(tmp_path / "record.json")
    assert "HIL_HOME" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_without_inodes_is_told_apart(tmp_path: Path) -> None:
    """A real tmpfs of two inodes, which has bytes left."""
    code = (
        "import sys; from pathlib import Path\n"
        "from harness.system.files import DiskError, disk_errors\n"
        "try:\n"
        "    with disk_errors('making files'):\n"
        "        for n in range(9): (Path(sys.argv[1]) / str(n)).touch()\n"
        "except DiskError as error: print(error.kind, error.hint)\n"
    )
    mount = f'mount -t tmpfs -o nr_inodes=2,size=1M none {tmp_path} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.startswith("disk_full no inode is free (`df -i`)"), done.stderr


def test_a_disk_without_locks_says_what_to_do() -> None:
    with pytest.raises(DiskError) as caught, disk_errors("locking"):
        raise OSError(errno.ENOLCK, "No locks available", "/net/.hil/in_use.lock")
    assert "NFS" in str(caught.value.hint)


def test_of_a_copy_the_full_place_is_named() -> None:
    """shutil.copyfile's error names both, its source first."""
    with pytest.raises(DiskError) as caught, disk_errors("copying"):
        raise OSError(errno.ENOSPC, "No space left on device", "/a/source", None, "/full/place")
    assert "(/full/place)" in str(caught.value)
    assert caught.value.path == "/full/place"


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with suppress(KeyboardInterrupt), whole_folder(out) as folder:
        (folder / "half").touch()
        raise KeyboardInterrupt
    assert list(out.parent.iterdir()) == []
    (out.parent / ".out.new").mkdir()  # of a killed writer
    (out.parent / ".out.new" / "half").touch()
    with whole_folder(out) as folder:
        assert not out.exists()
        (folder / "all").touch()
    assert [f.name for f in out.parent.rglob("*")] == ["out", "all"]
