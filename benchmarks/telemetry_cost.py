"""The cost of reporting to OpenTelemetry: off, with the API package alone, and with spans and metrics kept in memory.

    python benchmarks/telemetry_cost.py

A retrieval from 300 passages and a search among 300 memories, in turn with each setting; medians of CPU time in
milliseconds. Then the time of the hooks themselves while they are off, in microseconds.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from meve import Retriever, telemetry
from meve._telemetry import count, measure, span
from meve.memory import GovernedMemory
from meve.testing.fakes import OverlapVerifier

ROUNDS, HOOKS = 60, 100_000


def main() -> None:
    """Measure and print."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    meters = MeterProvider([InMemoryMetricReader()])
    settings: dict[str, Callable[[], None]] = {
        "off": telemetry.uninstrument,
        "API alone": telemetry.instrument,
        "SDK": lambda: telemetry.instrument(tracer_provider=provider, meter_provider=meters),
    }
    texts = [f"My friend number {n} lives in street {n + 100} of town {n % 37}." for n in range(300)]
    retriever = Retriever.from_texts(texts, embedder="static", verifier=OverlapVerifier())
    with (
        tempfile.TemporaryDirectory() as folder,
        GovernedMemory.open(Path(folder) / "memory.db", embedder="static") as memory,
    ):
        for text in texts:
            memory.add(text, user_id="ann", source="doc")
        calls: dict[str, Callable[[int], object]] = {
            "retrieval": lambda n: retriever.retrieve(f"Where does my friend number {n} live?"),
            "memory search": lambda n: memory.search(f"Where does my friend number {n} live?", user_id="ann"),
        }
        for name, call in calls.items():
            times: dict[str, list[float]] = {setting: [] for setting in settings}
            for n in range(ROUNDS):
                for setting, begin in settings.items():
                    begin()
                    start = time.process_time()
                    call(3 * n + list(settings).index(setting))
                    times[setting].append(time.process_time() - start)
            print(name, {setting: round(1000 * statistics.median(each), 3) for setting, each in times.items()})
    telemetry.uninstrument()
    start = time.process_time()
    for _ in range(HOOKS):
        with span("meve.verify"):
            pass
    spans = (time.process_time() - start) / HOOKS * 1e6
    start = time.process_time()
    for _ in range(HOOKS):
        count("meve.shed", {"meve.shed.kind": "search"})
        measure("meve.phase.duration", 0.1)
    print(
        f"a span while off: {spans:.2f} µs; a counter and a measurement: "
        f"{(time.process_time() - start) / HOOKS * 1e6:.2f} µs"
    )


if __name__ == "__main__":
    main()
