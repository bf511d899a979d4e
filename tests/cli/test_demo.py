def test_another_index_is_not_taken_for_the_demo_s(meve, index):
    """Nothing is made again or written over."""
    before = sorted(index.iterdir())
    done = meve("demo", "--to", index)
    assert done.exit_code == 1
    assert "holds another index than the demo's: name a new folder" in done.stderr
    assert sorted(index.iterdir()) == before
