"""OpenTelemetry: spans and metrics of retrievals and memories, by the API package alone (extra `otel`).

The names follow OpenTelemetry's conventions for generative AI where there are any (`gen_ai.…`, in development); the
others begin with `meve.`. docs/operations.md lists them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from meve._extras import require_imports
from meve._telemetry import Value, set_recorder
from meve._version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Span, Status, Tracer, TracerProvider

NEEDS = {"opentelemetry.trace": "otel", "opentelemetry.metrics": "otel"}
_OPERATION = "gen_ai.operation.name"
_DURATION = "gen_ai.client.operation.duration"
_COUNTERS = {
    "meve.retrievals": "Verified contexts, by meve.sufficient.",
    "meve.answers": "Answers of routers, by meve.tier and meve.abstained.",
    "meve.memory.events": "Entries of audit logs, by meve.action: add, expire, delete and so on.",
    "meve.shed": "Work that was refused, reduced or put off under load, by meve.shed.kind.",
    "meve.audit.verifications": "Verifications of audit logs, by meve.audit.ok.",
}
_GAUGES = {
    "meve.audit.entries": "Intact entries of the audit log that was verified last.",
    "meve.audit.intact": "1 if the audit log that was verified last and its records are intact, else 0.",
}


def instrument(
    *,
    tracer_provider: "TracerProvider | None" = None,
    meter_provider: "MeterProvider | None" = None,
    content: bool = False,
) -> None:
    """Report to OpenTelemetry from now on, in this process. A second call replaces the first.

    Args:
        tracer_provider: gets the spans; the global one by default.
        meter_provider: gets the metrics; the global one by default.
        content: whether spans hold the texts of queries, and ids and scores of what was found. Users' ids and the
            texts that were found are never in them.

    Raises:
        MissingExtraError: `opentelemetry-api` isn't installed.
    """
    with require_imports("telemetry", NEEDS):
        from opentelemetry import metrics, trace

        tracer = trace.get_tracer("meve", __version__, tracer_provider)
        meter = metrics.get_meter("meve", __version__, meter_provider)
    set_recorder(_OpenTelemetry(tracer, meter, has_content=content))


def uninstrument() -> None:
    """Report no more."""
    set_recorder(None)


class _OpenTelemetry:
    """See `meve._telemetry.Recorder`."""

    def __init__(self, tracer: "Tracer", meter: "Meter", *, has_content: bool) -> None:
        self._tracer, self.has_content = tracer, has_content
        self._counters = {
            name: meter.create_counter(name, unit="1", description=text) for name, text in _COUNTERS.items()
        }
        self._gauges = {name: meter.create_gauge(name, unit="1", description=text) for name, text in _GAUGES.items()}
        self._durations = {
            _DURATION: meter.create_histogram(_DURATION, unit="s", description="Duration of an operation."),
            "meve.phase.duration": meter.create_histogram(
                "meve.phase.duration", unit="s", description="Duration of a phase of a retrieval, by meve.phase."
            ),
        }

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Value]) -> Iterator["_Span"]:
        is_operation = not name.startswith("meve.")
        kind = {_OPERATION: name, "gen_ai.provider.name": "meve"} if is_operation else {}
        start = perf_counter()
        error_type = {}
        with self._tracer.start_as_current_span(
            name, attributes={**kind, **attributes}, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _Span(span)
            except BaseException as error:  # its message may hold content
                error_type = {"error.type": type(error).__qualname__}
                span.set_attributes(error_type)
                span.set_status(_error_status())
                raise
            finally:
                if is_operation:
                    self._durations[_DURATION].record(perf_counter() - start, {**kind, **error_type})

    def count(self, name: str, number: int, attributes: Mapping[str, Value]) -> None:
        self._counters[name].add(number, dict(attributes))

    def measure(self, name: str, value: float, attributes: Mapping[str, Value]) -> None:
        if name in self._gauges:
            self._gauges[name].set(value, dict(attributes))
        else:
            self._durations[name].record(value, dict(attributes))


class _Span:
    """See `meve._telemetry.Span`."""

    def __init__(self, span: "Span") -> None:
        self._span = span

    def describe(self, attributes: Mapping[str, Value]) -> None:
        self._span.set_attributes(dict(attributes))


def _error_status() -> "Status":
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.ERROR)
