"""What MeVe reports to OpenTelemetry, kept in memory."""

from contextlib import contextmanager

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from meve import telemetry


@contextmanager
def recording(**options):
    """Report to memory in the block."""
    made = Recorded(**options)
    try:
        yield made
    finally:
        telemetry.uninstrument()
        made.meters.shutdown()


class Recorded:
    """What was recorded since `instrument`."""

    def __init__(self, **options):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider, self.seen = TracerProvider(), {}
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        telemetry.instrument(tracer_provider=self.provider, meter_provider=self.meters, **options)
        self.tracer = self.provider.get_tracer("the application")

    def spans(self, name=None):
        return [span for span in self.exporter.get_finished_spans() if name in (None, span.name)]

    def points(self, name):
        """Return by attributes the value of a counter or gauge, or the number of values of a histogram."""
        data = self.reader.get_metrics_data()  # older SDKs tell the value of a gauge once
        for resource in data.resource_metrics if data else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.data.data_points:
                    value = getattr(point, "value", getattr(point, "count", None))
                    self.seen.setdefault(metric.name, {})[tuple(sorted(point.attributes.items()))] = value
        return self.seen.get(name, {})

    def everything(self):
        """Return all that would leave the process, as one text."""
        spans = "".join(span.to_json() for span in self.exporter.get_finished_spans())
        data = self.reader.get_metrics_data()
        return spans + (data.to_json() if data else "")

    def parents(self, name):
        """Return the names of the spans around the spans of a name, from the innermost on."""
        spans = {span.context.span_id: span for span in self.spans()}
        around = []
        for span in self.spans(name):
            names = []
            while span.parent is not None:
                span = spans[span.parent.span_id]
                names.append(span.name)
            around.append(names)
        return around
