"""Random requests by the OpenAPI document: valid ones are answered, others refused, and each answer is documented."""

import warnings

import pytest
from hypothesis import HealthCheck, given, settings

from tests.service.kernels import entries, open_kernel, serve

schemathesis = pytest.importorskip("schemathesis")

SETTINGS = settings(
    max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Return a kernel that knows a conversation, and its document."""
    kernel = open_kernel(tmp_path_factory.mktemp("kernel"), requests_per_second=10**6, burst=10**6)
    with serve(kernel) as served:
        kernel.add("acme", "c", entries())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield served, schemathesis.openapi.from_url(f"{served.url}/openapi.json")


OPERATIONS = [("POST", path) for path in ("/slice", "/turns", "/forget")]
OPERATIONS += [("GET", path) for path in ("/health", "/metrics", "/docs")]


def test_every_operation_is_tried(known):
    _, schema = known
    labels = {each.ok().label for each in schema.get_all_operations()}
    assert labels == {f"{method} {path}" for method, path in OPERATIONS}


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [(*each, "positive") for each in OPERATIONS] + [(*each, "negative") for each in OPERATIONS if each[0] == "POST"],
)
def test_random_requests_get_documented_answers(known, method, path, mode):
    served, schema = known
    requests = schema[path][method].as_strategy(generation_mode=schemathesis.GenerationMode(mode))

    @SETTINGS
    @given(requests)
    def check(case):
        case.call_and_validate(headers={"Authorization": f"Bearer {served.bearer}"})

    check()
