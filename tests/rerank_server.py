"""A local rerank API that scores by the share of the query's words, and answers as a test tells it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from meve.testing.fakes import OverlapVerifier


class RerankServer(ThreadingHTTPServer):
    """Records requests; `answers` are statuses, functions of the results, or seconds to wait, for the next requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests, self.headers, self.answers, self.released = [], [], [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1/rerank"

    def handle_error(self, request, client_address):
        """Say nothing: clients that time out close their connection."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.headers.append(dict(self.headers))
        answer = self.server.answers.pop(0) if self.server.answers else None
        if answer == "hang":
            self.server.released.wait(10)
        if isinstance(answer, int):
            return self._send(answer, b'{"message": "not now"}')
        scores = OverlapVerifier().raw_scores(body["query"], body["documents"]).tolist()
        results = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
        results.sort(key=lambda each: -each["relevance_score"])
        results = results[: body.get("top_n") or None]
        whole = {"model": body["model"], "results": results}
        return self._send(200, answer(whole) if callable(answer) else json.dumps(whole).encode())

    def _send(self, status, data):
        self.send_response(status)
        if status in (301, 307):
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serve_reranker():
    """Run a server within the block."""
    server = RerankServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
