"""What users' own tests need: fakes, and the contract suites that every implementation of a part must pass.

The contract suites need pytest and hypothesis: pip install 'meve[testing]'
"""

SUITE = "a contract suite of meve.testing"
NEEDS = {"pytest": "testing", "hypothesis": "testing"}
"""What every suite is written with."""
