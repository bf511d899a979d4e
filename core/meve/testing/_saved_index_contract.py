"""The rules and helpers that the contracts of dense and lexical indexes share."""

from pathlib import Path

import numpy as np

from meve._extras import require_imports
from meve.errors import IndexCorruptError, IndexNotFoundError
from meve.ports import DenseIndex, LexicalIndex
from meve.testing import NEEDS, SUITE
from meve.types import RowArray

with require_imports(SUITE, NEEDS):
    import pytest


def make_rows(*keys: int) -> RowArray:
    """Return row numbers as an array."""
    return np.array(keys, dtype=np.int64)


class SavedIndexContract:
    """The rules on the file of a saved index."""

    def test_damaged_file_raises_error_with_its_path(self, index: DenseIndex | LexicalIndex, tmp_path: Path) -> None:
        path = tmp_path / "index"
        index.save(path)
        whole = path.read_bytes()
        middle = len(whole) // 2
        altered = whole[:middle] + bytes(byte ^ 255 for byte in whole[middle : middle + 64]) + whole[middle + 64 :]
        for content in (whole[:middle], altered, b"", b"not an index"):
            path.write_bytes(content)
            with pytest.raises(IndexCorruptError, match=str(path)):
                type(index).load(path)
        with pytest.raises(IndexNotFoundError, match="nowhere"):
            type(index).load(tmp_path / "nowhere")
