"""Servers of this machine instead of a chat's and GitHub's: real HTTP, answers and refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Service:
    """``received``: method, path and body of each request; ``fails``: a status for all of them."""

    received: list[tuple[str, str, Any]] = field(default_factory=list)
    fails: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        return 200, {}


@dataclass
class GitHub(Service):
    """The issues of o/r, for whoever has the token."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    comments: list[tuple[int, str]] = field(default_factory=list)  # a comment's id is its place

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        if token != "Bearer secret":
            return 401, {"message": "Bad credentials"}
        parts = urlsplit(path)
        if comment := re.fullmatch(r"/repos/o/r/issues/comments/(\d+)", parts.path):
            place = int(comment[1])
            self.comments[place] = (self.comments[place][0], body["body"])
            return 200, {}
        match = re.fullmatch(r"/repos/o/r/issues(?:/(\d+)(/comments)?)?", parts.path)
        if match is None:
            return 404, {"message": "Not Found"}
        number, comments = match.groups()
        if method == "GET":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if comments:
                size, page = int(asked["per_page"]), int(asked["page"])
                there = [
                    {"id": place, "body": text}
                    for place, (issue, text) in enumerate(self.comments)
                    if issue == int(number)
                ]
                return 200, there[size * (page - 1) : size * page]
            found = [
                each
                for each in self.issues
                if each["state"] == asked["state"] and asked["labels"] in each["labels"]
            ]
            size, page = int(asked["per_page"]), int(asked["page"])
            return 200, found[size * (page - 1) : size * page]
        if comments:
            self.comments.append((int(number), body["body"]))
            return 201, {}
        if method == "PATCH":
            self.issues[int(number) - 1].update(body)
            return 200, self.issues[int(number) - 1]
        self.issues.append({"number": len(self.issues) + 1, "state": "open", **body})
        return 201, self.issues[-1]


@contextmanager
def running(service: Service) -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw else None
            service.received.append((self.command, self.path, body))
            token = self.headers.get("Authorization", "")
            status, answer = service.answer(self.command, self.path, body, token)
            self.send_response(service.fails or status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = _serve

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.port = server.server_port
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield service
        server.shutdown()
        thread.join()
