"""The removal of a tenant from a PostgreSQL database, by the statements of docs/memory-databases.md."""

import re
import uuid
from pathlib import Path

import pytest

from meve.memory.stores.postgresql import _schema
from tests.memories import open_memory
from tests.memory.sealed_files import Workload
from tests.postgres import MemoryUrl

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")


@pytest.fixture
def url(postgres_url, tmp_path):
    return MemoryUrl(postgres_url, tmp_path / "memory.keys")


def of_tenant(url, tenant, **options):
    return open_memory(url, tenant=tenant, key_file=url.keys.with_name(f"{tenant}.keys"), **options)


def run(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("is_bound", [True, False])
def test_statements_of_the_docs_remove_one_tenant(url, clock, is_bound):
    """Also by a superuser, from whom row-level security hides nothing."""
    page = (Path(__file__).parents[2] / "docs" / "memory-databases.md").read_text()
    (removal,) = (each for each in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "ARRAY[" in each)
    named = re.search(r"ARRAY\[(.*?)\]", removal, re.DOTALL)[1]
    assert set(re.findall(r"\w+", named)) == set(_schema.TABLES)
    role = f"app_{uuid.uuid4().hex}"
    run(url, f"CREATE ROLE {role} LOGIN")
    try:
        run(url, f"DO $$ BEGIN EXECUTE 'GRANT ALL ON SCHEMA ' || current_schema() || ' TO {role}'; END $$")
        app = MemoryUrl(url.replace("meve@", f"{role}@"), url.keys)
        for tenant in ("acme", "other"):
            with of_tenant(app, tenant, clock=clock) as memory:
                work = Workload(memory)
                for _ in range(40):
                    work.add()
                memory.maintain()
        before = {table: rows_of(url, table) for table in _schema.TABLES}
        assert {table for table in before if before[table].get(1)} >= {"memories", "users", "archive", "gone", "audit"}
        run(app if is_bound else url, removal)
        assert run(url, "SELECT name FROM meve_tenants") == [("other",)]
        for table in _schema.TABLES:
            assert rows_of(url, table) == {tenant: n for tenant, n in before[table].items() if tenant == 2}
        with of_tenant(app, "other", clock=clock) as memory:
            assert memory.audit.verify().ok
            assert memory.find_damage() == []
        with pytest.raises(psycopg.errors.RaiseException, match="no such tenant"):
            run(app, removal)
        url.keys.with_name("acme.keys").unlink()
        with of_tenant(app, "acme", clock=clock) as memory:
            assert memory.stats().records == 0
    finally:
        run(url, f"DROP OWNED BY {role} CASCADE")
        run(url, f"DROP ROLE {role}")


def rows_of(url, table):
    """Return the number of a table's rows, by tenant."""
    return dict(run(url, f"SELECT tenant, count(*) FROM meve_{table} GROUP BY tenant"))
