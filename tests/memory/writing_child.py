"""Add records to a file until killed, and print each acknowledged write."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from meve.memory.stores.sqlite.store import SqliteStore
from meve.testing.fakes import OverlapVerifier
from tests.memories import open_memory


def write(file, name, count, threads):
    memory = open_memory(file, verifier=OverlapVerifier())  # a model would take longer to load than all that follows

    def add(n):
        record = memory.add(f"fact {n} of {name}", user_id=f"user {n % 3}", id=f"{name}-{n}", source="doc")
        if n % 5 == 4:
            memory.update(record.id, user_id=record.user_id, text=f"changed fact {n} of {name}")
        if n % 7 == 6:
            memory.delete(record.id, user_id=record.user_id)
            sys.stdout.write(f"gone {record.id}\n")
        else:
            sys.stdout.write(f"kept {record.user_id}/{record.id}\n")
        sys.stdout.flush()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(count)))
    memory.close()


def open_new(folder, count, start):
    """Open new files, each at the moment at which other processes do."""
    for n in range(count):
        at = start + 0.03 * n
        time.sleep(max(at - time.time() - 0.005, 0))
        while time.time() < at:
            pass
        SqliteStore.open(folder / f"{n}.db").close()
    sys.stdout.write("opened\n")
