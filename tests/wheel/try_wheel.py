"""Build the wheel, and try it where the tree can't help: plain, with nothing but what it asks for, and under the tests.

Run by `make wheel`. Every step runs in a folder outside the tree, so that only what the wheel holds can be imported.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHAT = ("tests", "README.md", "docs")
BESIDE = ("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile")
TESTS = ("tests", "conftest.py", "README.md", "docs", "pyproject.toml")


def main() -> None:
    """Build it, and for each way to install it, install and test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraint", type=Path, default=ROOT / "constraints.txt")
    constraint = parser.parse_args().constraint.resolve()
    with tempfile.TemporaryDirectory(prefix="meve-wheel-") as name:
        work = Path(name)
        say("building the wheel")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(work), str(ROOT), cwd=work)
        wheel = next(work.glob("*.whl"))
        plain(wheel, constraint, work)
        for extra in ("langchain", "langchain-agents", "langchain-classic", "langgraph", "llama-index"):
            with_extra(extra, wheel, constraint, work)
        whole(wheel, work)


def plain(wheel: Path, constraint: Path, work: Path) -> None:
    """Alone with its own dependencies: it imports, its command runs, and what needs more says which extra."""
    say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB, alone with what it depends on")
    python = environment(work / "plain")
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(constraint), str(wheel), cwd=work)
    script = work / "plain_install.py"
    shutil.copy(ROOT / "tests" / "wheel" / "plain_install.py", script)
    run(python, "-W", "error::DeprecationWarning:meve", str(script), cwd=work)


def with_extra(extra: str, wheel: Path, constraint: Path, work: Path) -> None:
    """With one extra and nothing else: what that extra promises."""
    say(f"{wheel.name} with {extra} alone")
    python = environment(work / f"with-{extra}")  # a folder named langchain would pass for the package
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(constraint), f"{wheel}[{extra}]", cwd=work)
    script = work / f"{extra}_install.py"
    shutil.copy(ROOT / "tests" / "wheel" / script.name, script)
    run(python, "-W", "error::DeprecationWarning:meve", str(script), cwd=work)


def whole(wheel: Path, work: Path) -> None:
    """Under the project's own tests, beside the libraries that the development environment has."""
    say("the tests, against the installed wheel")
    python = environment(work / "whole")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel), cwd=work)
    theirs = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    ours = [path for path in sys.path if path.endswith("site-packages")]
    # a folder named in a .pth file adds its packages, but not the .pth files in it: the editable install stays out
    (Path(theirs) / "development.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    tree = work / "tree"
    tree.mkdir()
    for item in TESTS:
        source = ROOT / item
        if source.is_dir():
            shutil.copytree(source, tree / item)
        elif source.exists():
            shutil.copy(source, tree / item)
    check = f"import meve, sys; sys.exit(not meve.__file__.startswith({theirs!r}))"
    run(python, "-c", check, cwd=tree)
    # what the tree's own run has shown at length (kills at every step, interruptions at every line) isn't repeated
    run(python, "-m", "pytest", "-q", *BESIDE, "-m", "not slow", "-k", "not interrupted", *WHAT, cwd=tree)


def environment(folder: Path) -> str:
    """A fresh virtual environment's python."""
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def run(*command: str, cwd: Path) -> None:
    """Run, and stop at the first failure."""
    done = subprocess.run(command, cwd=cwd, check=False)
    if done.returncode:
        say(f"failed: {' '.join(command)}")
        sys.exit(done.returncode)


def say(text: str) -> None:
    """To people who watch."""
    sys.stdout.write(f"wheel: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
