def test_folder_with_another_index_is_rejected(meve, index):
    before = sorted(index.iterdir())
    result = meve("demo", "--to", index)
    assert result.exit_code == 1
    assert "holds an index that isn't the demo's: name a new folder" in result.stderr
    assert sorted(index.iterdir()) == before
