"""Contract suites for your own embedders, verifiers, indexes, counters, detectors and stores; fakes for your tests.

Inherit the suite of a component, override its fixture, and run pytest. The suites need pytest and hypothesis:
pip install 'meve[testing]'
"""

SUITE = "a contract suite of meve.testing"
NEEDS = {"pytest": "testing", "hypothesis": "testing"}
"""The packages that every suite imports, with their extra."""
