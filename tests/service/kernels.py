"""Kernels for tests, served over loopback by a thread of this process."""

import socket
import threading
from contextlib import closing, contextmanager

import uvicorn

from meve.conversation import PlacedTurn, SlicePolicy, TurnGraph
from meve.service._web.running import listen
from meve.service.kernel import GraphKernel, KernelAuthority, KernelLimits, SigningKey, SigningKeys, TurnEntry
from meve.service.kernel.server import make_config

KEY = SigningKey(id="k1", secret=bytes(range(32)))
KEYS = SigningKeys(current="k1", keys=(KEY,))

TALK = [
    PlacedTurn(id="1", text="Help me debug"),
    PlacedTurn(id="2", text="401 from login", parents=("1",)),
    PlacedTurn(id="3", text="Is the JWT expired?", parents=("2",)),
    PlacedTurn(id="4", text="It expires in an hour", parents=("3",)),
    PlacedTurn(id="5", text="Does the user exist?", parents=("2",)),
    PlacedTurn(id="6", text="Yes", parents=("5",)),
    PlacedTurn(id="7", text="Why does it fail?", parents=("6",)),
]
GRAPH = TurnGraph.from_turns(TALK)
SLICE = ("1", "2", "3", "5", "6", "7")
"""The turns that the published policy admits from turn 7: not turn 4, which is below a sibling of its line."""


def entries(turns=TALK, tenant="acme", conversation="c", key=None):
    return [TurnEntry.from_turn(turn, tenant, conversation, key) for turn in turns]


def open_kernel(place, keys=KEYS, **limits):
    """Open the kernel at a PostgreSQL URL, or in a folder."""
    return GraphKernel.open(place if isinstance(place, str) else place / "kernel.db", keys, KernelLimits(**limits))


class Served:
    """A kernel at a URL."""

    def __init__(self, kernel, url):
        self.kernel, self.url = kernel, url
        self.bearer = kernel.store.grant("writer", "acme", may_add=True)
        self.reader = kernel.store.grant("reader", "acme")
        self.other = kernel.store.grant("other", "other", may_add=True)

    def authority(self, **arguments):
        given = {
            "bearer": self.bearer, "tenant": "acme", "conversation": "c", "timeout": 20.0,
            "keys": [key.verifying for key in self.kernel.keys.keys], **arguments,
        }  # fmt: skip
        return KernelAuthority(given.pop("url", self.url), **given)


@contextmanager
def serve(kernel):
    """Serve a kernel, and close it afterwards."""
    server = uvicorn.Server(make_config(kernel))
    with closing(kernel), listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
        thread.start()
        try:
            yield Served(kernel, f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def answering(respond):
    """Listen on a port, and let `respond` treat each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)

        def run():
            connection, _ = listener.accept()
            with connection:
                respond(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join(20)


def ask(url, served, **arguments):
    """Ask another kernel with the client of this one."""
    with closing(served.authority(url=url, **arguments)) as authority:
        return authority.cut(GRAPH, "7", SlicePolicy())
