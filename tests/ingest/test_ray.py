"""Test indexing on Ray: two workers, one of which is killed."""

import os
import signal
import threading
from functools import partial

import pytest

from meve import Retriever
from meve.errors import ConfigurationError, IngestError
from meve.ingest import ingest, ingest_on_ray, ray_shards
from meve.testing.fakes import WordEmbedder
from tests.fake_components import make_components


class Slow(WordEmbedder):
    """Embeds after a while, and notes in a folder which process did so."""

    def __init__(self, notes):
        super().__init__()
        self._notes = notes

    def embed_passages(self, texts):
        (self._notes / str(os.getpid())).touch()
        threading.Event().wait(0.2)
        return super().embed_passages(texts)


@pytest.fixture(scope="module")
def cluster():
    """Start Ray with two cores."""
    ray = pytest.importorskip("ray", reason="NOT TESTED: indexing on Ray needs the extra ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    yield ray
    ray.shutdown()


@pytest.fixture
def files(tmp_path):
    """Return a folder of 40 files with up to three passages each, and rows with ids of their own."""
    made = tmp_path / "files"
    made.mkdir()
    for n in range(40):
        sections = [f"# Part {part} of {n}\n\nHoney number {n} of part {part}.\n" for part in range(n % 3 + 1)]
        (made / f"{n}.md").write_text("\n".join(sections))
    (made / "rows.jsonl").write_text('{"id": "moon", "text": "The Moon."}\n')
    return made


def stored(retriever):
    return sorted((p.id, p.text, p.metadata.get("source")) for p in retriever.passages())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_worker_that_is_killed_loses_and_doubles_nothing(cluster, postgres_url, files, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_shards, "SHARD", 4)
    notes = tmp_path / "notes"
    notes.mkdir()
    open_it = partial(Retriever.over, postgres_url, collection="docs", **make_components(embedder=Slow(notes)))
    killed = []

    def kill_one(stage, done, total):
        if done == 2:
            killed.append(int(next(notes.iterdir()).name))
            os.kill(killed[0], signal.SIGKILL)

    expected = Retriever.empty(**make_components())
    ingest(files, expected)
    report = ingest_on_ray(files, open_it, progress=kill_one)
    assert killed
    assert len(list(notes.iterdir())) >= 3, "another worker went on"
    with_all = open_it()
    assert stored(with_all) == stored(expected)
    assert len(report.read) + report.unchanged == 41

    (files / "rows.jsonl").rename(files / "new.jsonl")
    (files / "7.md").write_text("# Changed\n\nWax.\n")
    (files / "8.md").unlink()
    again = ingest_on_ray(files, open_it)
    assert (sorted(again.read), again.unchanged, sorted(again.removed)) == (
        ["7.md", "new.jsonl"], 38, ["8.md", "rows.jsonl"],
    )  # fmt: skip
    ingest(files, expected)
    assert stored(with_all) == stored(expected)
    assert not ingest(files, with_all).changed, "a run without Ray finds the same record"
    with_all.close()


def test_place_that_workers_cannot_share_is_refused(cluster, files, tmp_path):
    with pytest.raises(ConfigurationError, match="needs a server"):
        ingest_on_ray(files, partial(Retriever.empty, **make_components()))
    with pytest.raises(IngestError, match="nowhere"):
        ingest_on_ray(tmp_path / "nowhere", partial(Retriever.empty, **make_components()))
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    local = partial(Retriever.over, f"qdrant://{tmp_path}/q", collection="docs", **make_components())
    with pytest.raises(ConfigurationError, match="local mode"):
        ingest_on_ray(files, local)
