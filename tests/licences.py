"""Writes docs/licences.md: `python -m tests.licences` (make licences)."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
DEVELOPMENT = ("dev", "dev-without-torch", "testing", "bench", "docs", "peers")
"""Extras that only tests and benchmarks need."""
SHORT = {
    "Apache": "Apache-2.0", "Apache2.0": "Apache-2.0", "Apache 2.0 License": "Apache-2.0", "MIT License": "MIT",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}  # fmt: skip
HEAD = """# Licences of dependencies

The versions are those that the tests ran with. The licence is the one that the package states in its metadata.
`make licences` writes this page, and a test compares it with the installed packages.
"""


def read_licence(name: str) -> tuple[str, str] | None:
    """Return the version and licence of an installed package."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    stated = [c.split("::")[-1].strip() for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    text = about.get("License-Expression") or _first_line(about.get("License")) or " or ".join(stated)
    return about["Version"].partition("+")[0], SHORT.get(text, text)


def _first_line(text: str | None) -> str:
    line = (text or "").partition("\n")[0].strip()
    return "" if line == "UNKNOWN" or len(line) > 40 else line


def direct() -> tuple[list[str], list[str]]:
    """Return the packages that MeVe needs, and those of its extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [e for name, each in project["optional-dependencies"].items() if name not in DEVELOPMENT for e in each]
    needed, more = ({re.match(r"[\w.-]+", e)[0] for e in each} - {"meve"} for each in (project["dependencies"], extras))
    return sorted(needed), sorted(more - needed)


def needed_by(names: list[str]) -> list[str]:
    """Return what installed packages need, and what that needs."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        needs = [Requirement(each) for each in metadata(waiting.pop()).get_all("Requires-Dist", [])]
        new = {canonicalize_name(r.name) for r in needs if r.marker is None or r.marker.evaluate({"extra": ""})} - found
        found |= new
        waiting += new
    return sorted(found - set(names))


def write_page() -> str:
    """Return the page."""
    needed, extras = direct()
    parts = (
        ("Needed by MeVe", needed),
        ("Needed by these", needed_by(needed)),
        ("Needed by extras", extras),
    )
    page = [HEAD]
    for title, names in parts:
        rows = [(name, *(read_licence(name) or ("not tested", "see its own page"))) for name in names]
        page += [f"## {title}\n", "| package | version | licence |", "|---|---|---|"]
        page += [f"| {name} | {version} | {licence} |" for name, version, licence in rows] + [""]
    return "\n".join(page)


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
