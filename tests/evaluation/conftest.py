import pytest

from meve.evaluation import statistics


@pytest.fixture
def few_draws(monkeypatch):
    """Intervals of little use, made quickly: for tests that look at means."""
    monkeypatch.setattr(statistics, "RESAMPLES", 20)
