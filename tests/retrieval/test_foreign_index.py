"""Test that a saved index from elsewhere is read as data: it names no files and no models, and has bounded sizes."""

import hashlib
import io
import json
import os
import socket
import time
import zipfile

import faiss
import huggingface_hub.constants
import numpy as np
import pytest

from meve import Retriever
from meve.components._array_files import write_arrays
from meve.components.dense.flat import FlatIndex
from meve.components.dense.hnsw import HnswIndex
from meve.components.dense.ivf import IvfIndex
from meve.errors import IndexCorruptError, MeveError, ModelNotFoundError, TokenizerUnavailableError
from meve.retrieval._snapshot import MANIFEST, read_manifest
from tests.fake_components import make_components

VECTORS = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
ROWS = np.arange(300)
KINDS = {"flat": (FlatIndex, {}), "hnsw": (HnswIndex, {"m": 4}), "ivf": (IvfIndex, {"lists": 4})}


def make_index(kind):
    index_class, options = KINDS[kind]
    index = index_class(8, **options)
    index.add(ROWS, VECTORS)
    return index


def write_index(path, kind, data, *, dimension=8, options=None, **arrays):
    arrays = {"rows": ROWS, "alive": np.ones(300, dtype=bool)} | arrays
    write_arrays(path, kind, {"dimension": dimension, "options": options or KINDS[kind][1]}, {"index": data, **arrays})


def on_disk_index(file):
    """Return the bytes of an inverted file whose lists are in a file of the sender's choice."""
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(8), 8, 4, faiss.METRIC_INNER_PRODUCT)
    index.train(VECTORS)
    lists = faiss.OnDiskInvertedLists(4, index.code_size, str(file))
    index.replace_invlists(lists)
    index.add(VECTORS)
    data = faiss.serialize_index(index)
    del index, lists
    return data


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))


def replace_file(folder, name, content):
    """Replace a file of an index, and state its size and digest as an attacker would."""
    manifest = read_manifest(folder)
    (folder / manifest["generation"] / name).write_bytes(content)
    facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_manifest(folder, files=manifest["files"] | {name: facts})


def save_index(folder):
    Retriever.from_texts(["The sky is blue."], **make_components()).save(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_file_with_lists_on_disk_is_refused_and_the_file_it_names_stays(tmp_path, kind):
    victim = tmp_path / "victim"
    data = on_disk_index(victim)
    victim.write_bytes(before := b"not yours" * 1_000)
    write_index(tmp_path / "dense", kind, data)
    with pytest.raises(IndexCorruptError, match="isn't one that MeVe writes"):
        KINDS[kind][0].load(tmp_path / "dense")
    assert victim.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factory", ["SQ8", "IVF4,SQ8", "PCA4,Flat", "IDMap,Flat", "HNSW4,SQ8", "Flat"])
def test_other_types_of_index_are_refused(tmp_path, kind, factory):
    metric = faiss.METRIC_L2 if factory == "Flat" else faiss.METRIC_INNER_PRODUCT  # the type is right, the metric wrong
    index = faiss.index_factory(8, factory, metric)
    index.train(VECTORS)
    index.add_with_ids(VECTORS, ROWS) if "IDMap" in factory else index.add(VECTORS)
    write_index(tmp_path / "dense", kind, faiss.serialize_index(index))
    with pytest.raises(IndexCorruptError):
        KINDS[kind][0].load(tmp_path / "dense")


@pytest.mark.parametrize("kind", KINDS)
def test_indexes_that_are_written_are_read(tmp_path, kind):
    index = make_index(kind)
    index.remove(np.arange(20))
    index.save(tmp_path / "dense")
    again = KINDS[kind][0].load(tmp_path / "dense")
    assert again.search(VECTORS[30], 5)[0].tolist() == index.search(VECTORS[30], 5)[0].tolist()
    empty = KINDS[kind][0](8)
    empty.save(tmp_path / "empty")
    assert len(KINDS[kind][0].load(tmp_path / "empty")) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_altered_bytes_give_an_error_or_an_index_that_can_be_searched(tmp_path, kind):
    data = faiss.serialize_index(make_index(kind)._state.index)
    random = np.random.default_rng(1)
    refused = 0
    for n in range(100):
        altered = data.copy()
        place = int(random.integers(len(data))) if n % 2 else int(random.integers(200))
        altered[place : place + 4] = random.integers(0, 256, 4 if place + 4 <= len(data) else len(data) - place)
        write_index(tmp_path / "dense", kind, altered[: len(data) - (n % 7 == 0)])
        try:
            index = KINDS[kind][0].load(tmp_path / "dense")
        except MeveError:
            refused += 1
        else:
            assert len(index.search(VECTORS[0], 5)[0]) <= 5
    assert refused > 20


@pytest.mark.parametrize(
    "wrong",
    [{"dimension": 2**40}, {"dimension": True}, {"options": {"m": 2**31}}, {"options": {"m": "4"}},
     {"alive": np.ones(299, dtype=bool)}, {"data": np.zeros(10)}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(tmp_path, wrong):
    write_index(tmp_path / "dense", "hnsw", **{"data": faiss.serialize_index(make_index("hnsw")._state.index)} | wrong)
    with pytest.raises(IndexCorruptError):
        HnswIndex.load(tmp_path / "dense")


def test_array_that_claims_more_than_its_bytes_is_refused(tmp_path):
    stated = io.BytesIO()
    np.lib.format.write_array_header_1_0(stated, {"descr": "<f8", "fortran_order": False, "shape": (2**42,)})
    with zipfile.ZipFile(tmp_path / "dense", "w") as archive:
        archive.writestr("index.npy", stated.getvalue())
    with pytest.raises(IndexCorruptError, match="larger than its bytes"):
        FlatIndex.load(tmp_path / "dense")


def test_compressed_arrays_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "dense.npz", index=np.zeros(10**7))
    with pytest.raises(IndexCorruptError, match="larger than its bytes"):
        FlatIndex.load(tmp_path / "dense.npz")


@pytest.mark.parametrize(
    ("part", "error"),
    [("embedder", ModelNotFoundError), ("verifier", ModelNotFoundError), ("tokens", TokenizerUnavailableError)],
)
def test_model_that_only_the_manifest_names_is_never_fetched(tmp_path, monkeypatch, part, error):
    folder = save_index(tmp_path / "index")
    edit_manifest(folder, **{part: read_manifest(folder)[part] | {"name": "evil/model"}})
    calls = []
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: calls.append(address) or 1 / 0)
    given = {name: value for name, value in make_components().items() if name != part}
    with pytest.raises(error, match="evil/model"):
        Retriever.load(folder, **given)
    assert calls == []


@pytest.mark.parametrize("name", ["//host/share/model", "\\\\host\\share", "https://example.org/model", 7, None])
@pytest.mark.parametrize("part", ["embedder", "verifier", "tokens"])
def test_name_that_is_an_address_is_refused(tmp_path, part, name):
    folder = save_index(tmp_path / "index")
    edit_manifest(folder, **{part: read_manifest(folder)[part] | {"name": name}})
    with pytest.raises(IndexCorruptError, match="must be a model's name or folder"):
        Retriever.load(folder)


def test_tokenizer_that_only_the_saved_settings_name_is_not_loaded(tmp_path):
    folder = save_index(tmp_path / "index")
    edit_manifest(folder, config=read_manifest(folder)["config"] | {"tokens": "evil/model"})
    retriever = Retriever.load(folder, **make_components())
    assert retriever.retrieve("sky").trace.tokens == retriever.engine.tokens.name


@pytest.mark.parametrize("name", [MANIFEST, "extra.json", "passages.jsonl"])
def test_data_nested_too_deep_is_refused(tmp_path, name):
    folder = save_index(tmp_path / "index")
    for depth in (66, 100_000):
        nested = "[" * depth + "]" * depth
        if name == MANIFEST:
            text = (folder / MANIFEST).read_text()
            (folder / MANIFEST).write_text(text[: text.rindex("}")] + f', "more": {nested}}}')
        else:
            line = f'{{"row": 0, "id": "a", "tokens": 1, "title": "", "text": "a", "metadata": {{"a": {nested}}}}}'
            replace_file(folder, name, line.encode())
        with pytest.raises(IndexCorruptError, match="nested at most 64 deep"):
            Retriever.load(folder, **make_components())


def test_manifest_of_too_many_bytes_or_files_is_refused(tmp_path):
    folder = save_index(tmp_path / "index")
    edit_manifest(
        folder, files=read_manifest(folder)["files"] | {f"f{n}": {"bytes": 0, "sha256": ""} for n in range(64)}
    )
    with pytest.raises(IndexCorruptError):
        Retriever.load(folder, **make_components())
    (folder / MANIFEST).write_text(" " * (17 << 20))
    with pytest.raises(IndexCorruptError, match="more than 16,777,216 bytes"):
        Retriever.load(folder, **make_components())


@pytest.mark.parametrize("name", [MANIFEST, "passages.jsonl"])
@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_pipe_or_device_in_place_of_a_file_is_refused_at_once(tmp_path, name, plant):
    save_index(tmp_path)
    manifest = read_manifest(tmp_path)
    path = tmp_path / manifest["generation"] / name if name != MANIFEST else tmp_path / name
    if name != MANIFEST:
        manifest["files"][name]["bytes"] = 0
        edit_manifest(tmp_path, files=manifest["files"])
    path.unlink()
    plant(path)
    began = time.monotonic()
    with pytest.raises(IndexCorruptError, match="not a regular file"):
        Retriever.load(tmp_path, **make_components())
    assert time.monotonic() - began < 30


def test_saving_into_a_folder_from_elsewhere_follows_no_link_in_it(tmp_path):
    folder, other = tmp_path / "index", tmp_path / "other"
    other.write_text("precious")
    save_index(folder)
    (folder / f"{MANIFEST}.new").symlink_to(other)
    retriever = Retriever.load(folder, **make_components())
    retriever.save(folder)
    assert other.read_text() == "precious"
    assert len(Retriever.load(folder, **make_components())) == 1
