import pytest

pytest.importorskip("starlette", reason="the graph kernel needs the extra kernel")
pytest.importorskip("uvicorn", reason="the graph kernel needs the extra kernel")

from tests.service.kernels import TALK, open_kernel, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a kernel that knows the conversation c of the tenant acme."""
    with serve(open_kernel(tmp_path_factory.mktemp("kernel"), requests_per_second=10_000, burst=10_000)) as served:
        authority = served.authority()
        assert authority.add(TALK) == len(TALK)
        authority.close()
        yield served


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Return where a kernel may keep its graph: a folder for an SQLite file, or the URL of a PostgreSQL database."""
    return tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
