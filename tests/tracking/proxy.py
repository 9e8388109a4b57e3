"""A network in front of a real MLflow server that can ask for a password, refuse, hang, or die in the middle."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP = ("connection", "transfer-encoding", "content-length", "host")


class Proxy(ThreadingHTTPServer):
    """`authorization` is the header it wants ('' for none). Of the requests to the API it lets `passes` through (None:
    all); what becomes of the others, `then` says: `drop` closes the connection, `hang` never answers."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), Forward)
        self.upstream = urlsplit(upstream).netloc
        self.authorization, self.passes, self.then = "", None, "drop"
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class Forward(BaseHTTPRequestHandler):
    server: Proxy

    def forward(self) -> None:
        proxy, sent = self.server, self.headers.get("Authorization", "")
        if proxy.authorization and sent != proxy.authorization:
            return self.answer(401, f"you are not let in with '{sent}'".encode())
        if self.path.startswith("/api") and proxy.passes is not None:
            proxy.passes -= 1
            if proxy.passes < 0:
                if proxy.then == "hang":
                    proxy.over.wait(60)
                self.close_connection = True
                self.connection.close()
                return None
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP}
        upstream = http.client.HTTPConnection(proxy.upstream, timeout=60)
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        self.answer(answer.status, answer.read(), answer.getheader("Content-Type"))
        upstream.close()
        return None

    def answer(self, status: int, body: bytes, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""
