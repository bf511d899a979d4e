"""Build the documentation site in `build/site`: `python -m recipes.site.build` (make docs).

The pages keep the folders of the repository, so that their links hold in both. Notebooks become pages. The build fails
for a page that the navigation lacks, a broken link or anchor, and anything that the site would load from elsewhere.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
CONFIG = ROOT / "mkdocs.yml"
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE")
_LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]*)""")


def main() -> None:
    """Build the site, or exit with what is wrong."""
    assemble_pages()
    missing = sorted(find_pages() ^ set(read_navigation()))
    if missing:
        sys.exit(f"docs: in the navigation of mkdocs.yml or among the pages, but not in both: {', '.join(missing)}")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(CONFIG)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit("docs: the pages above have broken links, or docstrings that can't be shown")
    if loaded := find_loaded():
        sys.exit(f"docs: the site would load from elsewhere: {', '.join(sorted(loaded))}")
    sys.stdout.write(f"docs: {(SITE / 'index.html').relative_to(ROOT)}\n")


def assemble_pages() -> None:
    """Copy all pages to `PAGES`, with README as the first one, and notebooks as pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES / "docs")
    shutil.copytree(Path(__file__).parent / "assets", PAGES / "assets")
    for name in FILES:
        shutil.copy(ROOT / name, PAGES / name)
    (PAGES / "notebooks").mkdir()
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page = PAGES / "notebooks" / f"{file.stem}.md"
        page.write_text(render_notebook(json.loads(file.read_text(encoding="utf-8"))), encoding="utf-8")
    for card in (ROOT / "core").rglob("meve-*/README.md"):
        copy = PAGES / card.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        shutil.copy(card, copy)
    shutil.copy(ROOT / "README.md", PAGES / "index.md")
    for page in PAGES.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"(\]\([^)\s]*)\.ipynb\)", r"\1.md)", text).replace("](../README.md", "](../index.md")
        page.write_text(text, encoding="utf-8")


def render_notebook(notebook: dict) -> str:
    """Return the Markdown of a notebook: its text, code, printed output and pictures."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += filter(None, map(render_output, cell.get("outputs", ())))
    return "\n\n".join(parts) + "\n"


def render_output(output: dict) -> str:
    """Return the Markdown of one output of a cell: a picture, HTML or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![plot](data:image/png;base64,{''.join(data['image/png']).replace(chr(10), '')})"
    if "text/html" in data:
        return f"<div>{''.join(data['text/html'])}</div>"
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def find_pages() -> set[str]:
    """Return the paths of all pages."""
    return {page.relative_to(PAGES).as_posix() for page in PAGES.rglob("*.md")}


def read_navigation() -> Iterator[str]:
    """Yield the pages that the navigation names."""

    def leaves(node: object) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        else:
            for each in node.values() if isinstance(node, dict) else node:
                yield from leaves(each)

    return leaves(yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["nav"])


def find_loaded() -> set[str]:
    """Return the addresses from which a page of the site would load scripts, styles or pictures."""
    pages = (page.read_text(encoding="utf-8") for page in SITE.rglob("*.html"))
    return {found for page in pages for found in _LOADED.findall(page)}


if __name__ == "__main__":
    main()
