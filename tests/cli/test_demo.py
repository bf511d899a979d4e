def test_folder_with_another_index_is_rejected(meve, index):
    """Nothing is made again or written over."""
    before = sorted(index.iterdir())
    done = meve("demo", "--to", index)
    assert done.exit_code == 1
    assert "holds an index that isn't the demo's: name a new folder" in done.stderr
    assert sorted(index.iterdir()) == before
