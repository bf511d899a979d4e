"""`meve memory` on a PostgreSQL database: each command as on a file, and no password in the list of processes."""

import json
import re

import pytest

from tests.postgres import own_schema  # noqa: F401 - skips aloud without the server's package

pytest.importorskip("psycopg_pool", reason="PostgreSQL needs the extra postgres")

STORY = (
    ("add", "Tomatoes need 6-8 hours of sun.", "--user", "alice", "--id", "t", "--source", "doc"),
    ("add", "The shop opens at 9 on weekdays.", "--user", "int:7", "--id", "nine", "--source", "doc"),
    ("add", "The shop opens at 10 on weekdays.", "--user", "int:7", "--id", "ten", "--source", "doc"),
    ("search", "how much sun?", "--user", "alice"),
    ("list", "--user", "alice"),
    ("explain", "tomatoes", "--user", "alice"),
    ("maintain", "--yes", "--json"),
    ("restore", "nine", "--user", "int:7"),
    ("hold", "nine", "--user", "int:7", "--reason", "case 12"),
    ("forget", "--user", "int:7", "--everything", "--yes"),
    ("reembed", "--embedder", "static"),
    ("audit", "--json"),
    ("audit", "--head"),
    ("verify",),
    ("export", "--user", "alice"),
    ("stats", "--json"),
    ("certificate", "ten", "--user", "int:7"),
    ("forget", "t", "--user", "bob", "--yes"),
)


@pytest.fixture
def on_server(meve, postgres_url, tmp_path):
    """Return a function that runs `meve memory` on a tenant's memory in a database."""
    place = {"MEVE_MEMORY": postgres_url, "MEVE_KEY_FILE": str(tmp_path / "acme.keys"), "MEVE_TENANT": "acme"}
    return lambda *arguments, **env: meve("memory", *arguments, env={**place, **env})


def without_times(text):
    """Return an output without what differs between any two memories: times, digests, sizes and random keys."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?", "TIME", text)
    text = re.sub(r"([hr]:)?[0-9a-f]{16,}", "HASH", text)
    return re.sub(r'"bytes": \d+', "SIZE", text)


def test_every_command_prints_the_same_on_both(meve, on_server, tmp_path):
    (tmp_path / "audit.key").write_bytes(b"k" * 32)
    seen = set()
    for command in STORY:
        arguments = (*command, "--key", str(tmp_path / "audit.key"))
        here = meve("memory", *arguments, "--file", tmp_path / "memory.db")
        there = on_server(*arguments)
        assert (there.exit_code, without_times(there.output)) == (here.exit_code, without_times(here.output)), command
        seen.add(command[0])
    exported = tmp_path / "alice.json"
    on_server("export", "--user", "alice", "--key", str(tmp_path / "audit.key"), "--to", str(exported))
    other = {"MEVE_TENANT": "other", "MEVE_KEY_FILE": str(tmp_path / "other.keys")}
    assert on_server("import", str(exported), **other).stdout == "added: 1 memory\n"
    assert json.loads(on_server("stats", "--json", **other).stdout)["records"] == 1
    commands = re.findall(r"^│? *([a-z]+)  ", meve("memory", "--help").stdout.partition("Commands")[2], re.M)
    assert len(commands) > 10
    assert set(commands) - {"copy"} == seen | {"import"}


def test_copy_moves_a_memory_there_and_back(meve, postgres_url, tmp_path):
    (tmp_path / "audit.key").write_bytes(b"k" * 32)
    key = ("--key", tmp_path / "audit.key")
    for name, text in (("tea", "I like tea."), ("pin", "My PIN is 4711.")):
        meve("memory", "add", text, "--user", "a", "--id", name, "--file", tmp_path / "memory.db", *key)
    there = ("--target-key-file", tmp_path / "acme.keys", "--target-tenant", "acme")
    result = meve("memory", "copy", tmp_path / "memory.db", postgres_url, *there, *key)
    assert result.stdout == "copied and verified: 1 user, 2 memories, 0 archived, 2 log entries\n"
    back = ("--source-key-file", tmp_path / "acme.keys", "--source-tenant", "acme", "--json")
    result = json.loads(meve("memory", "copy", postgres_url, tmp_path / "back.db", *back, *key).stdout)
    head = meve("memory", "audit", "--head", "--file", tmp_path / "memory.db", *key).stdout.strip()
    assert result == {"users": 1, "records": 2, "archived": 0, "events": 2, "head": head}
    verified = meve("memory", "verify", "--file", tmp_path / "back.db", "--head", head, *key).stdout
    assert verified == "the log is intact: 2 entries\nas the log says: 2 memories\n"
    again = meve("memory", "copy", tmp_path / "memory.db", tmp_path / "back.db", *key)
    assert again.exit_code == 1
    assert "holds a memory already" in " ".join(again.stderr.split())
    for url in ((postgres_url.replace("meve@", "meve:s3cret@"), "x.db"), ("x.db", "postgresql://m:s3cret@db/x")):
        assert "set MEVE_COPY_" in " ".join(meve("memory", "copy", *url).stderr.split())


@pytest.mark.parametrize("side", ["source", "target"])
def test_copy_without_a_key_file_names_its_own_option(meve, postgres_url, tmp_path, side):
    places = (postgres_url, tmp_path / "x.db") if side == "source" else (tmp_path / "x.db", postgres_url)
    meve("memory", "add", "Tea.", "--user", "a", "--file", tmp_path / "x.db") if side == "target" else None
    result = meve("memory", "copy", *places, env={"MEVE_KEY_FILE": str(tmp_path / "keys")})
    assert result.exit_code == 1
    assert f"--{side}-key-file, or MEVE_{side.upper()}_KEY_FILE" in " ".join(result.stderr.split())


def test_options_name_keys_and_tenant(meve, postgres_url, tmp_path):
    def run(tenant, *arguments):
        return meve("memory", "--key-file", tmp_path / f"{tenant}.keys", "--tenant", tenant, *arguments)

    assert run("acme", "add", "Tea.", "--user", "a", "--id", "tea", "--file", postgres_url).exit_code == 0
    assert '"tea"' in run("acme", "list", "--user", "a", "--json", "--file", postgres_url).stdout
    missing = run("other", "list", "--user", "a", "--file", postgres_url)
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "there is no memory of tenant 'other' in that database" in " ".join(missing.stderr.split())
    assert not (tmp_path / "other.keys").exists()


def test_database_without_tables_is_left_as_it_is(on_server, postgres_url):
    import psycopg

    assert "there is no memory of tenant 'acme'" in " ".join(on_server("stats").stderr.split())
    with psycopg.connect(postgres_url) as connection:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
        assert connection.execute(tables).fetchone() == (0,)


def test_url_without_key_file_is_an_error(meve, postgres_url):
    result = meve("memory", "add", "Tea.", "--user", "a", "--file", postgres_url)
    assert result.exit_code == 1
    assert "needs key_file (meve memory --key-file" in " ".join(result.stderr.split())


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@db/meve", "postgresql://me@db/meve?password=s3cret"])
def test_password_on_the_command_line_is_refused(meve, url):
    result = meve("memory", "stats", "--file", url)
    assert result.exit_code == 2
    assert "set MEVE_MEMORY instead" in " ".join(result.stderr.split())
    assert "s3cret" not in result.output


def test_password_comes_from_the_environment(meve, tmp_path):
    """No server listens on port 1: so the command gets as far as the connection."""
    for env in ({"MEVE_MEMORY": "postgresql://me:s3cret@127.0.0.1:1/meve"}, {"PGPASSWORD": "s3cret"}):
        place = () if "MEVE_MEMORY" in env else ("--file", "postgresql://me@127.0.0.1:1/meve")
        result = meve("memory", "--key-file", tmp_path / "keys", "stats", *place, env=env)
        assert "meve at 127.0.0.1 can't be used: connection" in " ".join(result.stderr.split())
        assert "s3cret" not in result.output
