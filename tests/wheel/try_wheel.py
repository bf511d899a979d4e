"""Build the wheel, and test it outside the source tree: alone, with each extra, and under the whole test suite.

`make wheel` runs this script.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST_PATHS = ("tests", "README.md", "docs")
PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile")
COPIED = ("tests", "conftest.py", "README.md", "docs", "pyproject.toml")


def main() -> None:
    """Build the wheel, then install and test it in every way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraint", type=Path, default=ROOT / "constraints.txt")
    constraint = parser.parse_args().constraint.resolve()
    with tempfile.TemporaryDirectory(prefix="meve-wheel-") as name:
        work = Path(name)
        say("building the wheel")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(work), str(ROOT), cwd=work)
        wheel = next(work.glob("*.whl"))
        check_install(wheel, constraint, work)
        for extra in ("langchain", "langchain-agents", "langchain-classic", "langgraph", "llama-index"):
            check_install(wheel, constraint, work, extra)
        run_all_tests(wheel, work)


def check_install(wheel: Path, constraint: Path, work: Path, extra: str = "") -> None:
    """Test the wheel with its own dependencies, and with those of one extra."""
    kind = extra or "plain"
    say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB, {f'with {extra} alone' if extra else 'without extras'}")
    folder = work / f"with-{kind}"  # a folder named langchain would be imported as the package
    python = create_environment(folder / "environment")
    named = f"{wheel}[{extra}]" if extra else str(wheel)
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(constraint), named, cwd=work)
    for script in (f"{kind}_install.py", "install_checks.py"):
        shutil.copy(ROOT / "tests" / "wheel" / script, folder)
    run(python, "-W", "error::DeprecationWarning:meve", str(folder / f"{kind}_install.py"), cwd=work)


def run_all_tests(wheel: Path, work: Path) -> None:
    """Run all tests against the wheel, with the libraries of the development environment."""
    say("all tests, against the installed wheel")
    python = create_environment(work / "whole")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel), cwd=work)
    site_packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    development = [path for path in sys.path if path.endswith("site-packages")]
    # a folder named in a .pth file adds its packages but not its .pth files, so the editable install stays out
    (Path(site_packages) / "development.pth").write_text("\n".join(development) + "\n", encoding="utf-8")
    tree = work / "tree"
    tree.mkdir()
    for item in COPIED:
        source = ROOT / item
        if source.is_dir():
            shutil.copytree(source, tree / item)
        elif source.exists():
            shutil.copy(source, tree / item)
    check = f"import meve, sys; sys.exit(not meve.__file__.startswith({site_packages!r}))"
    run(python, "-c", check, cwd=tree)
    # the slow tests (kills at every step, interruptions at every line) run in the source tree only
    run(python, "-m", "pytest", "-q", *PARALLEL, "-m", "not slow", "-k", "not interrupted", *TEST_PATHS, cwd=tree)


def create_environment(folder: Path) -> str:
    """Create a virtual environment and return its python."""
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def run(*command: str, cwd: Path) -> None:
    """Run a command, and exit if it fails."""
    process = subprocess.run(command, cwd=cwd, check=False)
    if process.returncode:
        say(f"failed: {' '.join(command)}")
        sys.exit(process.returncode)


def say(text: str) -> None:
    """Print progress."""
    sys.stdout.write(f"wheel: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
