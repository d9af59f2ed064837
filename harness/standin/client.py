"""Asks a resident stand-in (``resident``) for one simulation, as a process that ends as it does.

Started as a script, isolated, with its own arguments in front: the socket, then what to do without
a resident, then the model's name and arguments. It imports next to nothing, for it is started
thousands of times. A request is a length (u32) and so many bytes: words with a zero byte between
them, with standard output and standard error as descriptors beside the first byte; the answer is
the exit status (i32).
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from collections.abc import Mapping, Sequence

_GONE = 75  # EX_TEMPFAIL: the resident ended before it answered


def ask(
    place: str,
    name: str,
    argv: Sequence[str],
    cwd: str,
    environment: Mapping[bytes, bytes],
    descriptors: tuple[int, int],
) -> int | None:
    """The exit status; None where there is no resident."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        try:
            connection.connect(f"\0{place}")
        except OSError:
            return None
        words = [os.fsencode(word) for word in (name, cwd, str(len(argv)), *argv)]
        words += [key + b"=" + value for key, value in environment.items()]
        content = b"\0".join(words)
        content = len(content).to_bytes(4, "little") + content
        given = b"".join(one.to_bytes(4, sys.byteorder) for one in descriptors)
        sent = connection.sendmsg([content], [(SOL_SOCKET, SCM_RIGHTS, given)])
        connection.sendall(content[sent:])
        answer = b""
        while len(answer) < 4:
            piece = connection.recv(4 - len(answer))
            if not piece:
                return _GONE
            answer += piece
        return int.from_bytes(answer, "little", signed=True)
    except OSError:
        return _GONE
    finally:
        connection.close()


def main(place: str, alone: str, packages: str, name: str, *argv: str) -> int:
    """``alone``: the program to start where no resident is."""
    status = ask(place, name, argv, os.getcwd(), os.environb, (1, 2))
    if status is None:
        os.execv(sys.executable, [sys.executable, "-I", "-S", alone, packages, name, *argv])
    if status == _GONE:
        os.write(2, f"Error: {name}: the resident stand-in at {place} ended\n".encode())
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
