"""Build the wheel, and test it outside the source tree: alone, with each extra, and under the whole test suite.

`make wheel` runs this script. `--suite` leaves out the installs with few packages, `--installs` the test suite.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGCHAIN = {
    "langchain": "plain",
    "langgraph": "langchain",
    "langchain-classic": "langchain",
    "langchain-agents": "langgraph",
}
"""The extras of LangChain, each with the install whose packages are part of it, and needn't be installed again."""
OTHERS = ("llama-index", "kernel", "serve", "postgres", "qdrant", "otel", "personal-data")
PACKAGES = ("meve", "langchain_meve", "llama_index_meve")
FOLDERS = ("tests", "docs", "notebooks", "recipes", "benchmarks")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "NOTICE", "conftest.py", "Makefile")
CONFIGURATIONS = ("pyproject.toml", "mkdocs.yml")
PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "worksteal")


def main() -> None:
    """Build the wheel, then install and test it in every way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraint", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--suite", action="store_true", help="only the test suite")
    parser.add_argument("--installs", action="store_true", help="only the installs alone and with each extra")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meve-wheel-") as name:
        work = Path(name)
        say("building the wheel")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(work), str(ROOT), cwd=work)
        wheel = next(work.glob("*.whl"))
        if not options.suite:
            check_installs(wheel, options.constraint.resolve(), work)
        if not options.installs:
            run_all_tests(wheel, work)


def check_installs(wheel: Path, constraint: Path, work: Path) -> None:
    """Test the wheel with its own dependencies, then with those of each extra beside them."""
    say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB, without extras")
    packages = {"plain": [check_install(wheel, "", constraint, work)]}

    def check_extra(extra: str, part: str) -> None:
        say(f"with {extra} alone")
        packages[extra] = [check_install(wheel, extra, constraint, work, *packages[part]), *packages[part]]

    def check_langchain() -> None:
        for extra, part in LANGCHAIN.items():
            check_extra(extra, part)

    with ThreadPoolExecutor(2) as pool:
        longest = pool.submit(check_langchain)
        for done in [longest, *(pool.submit(check_extra, extra, "plain") for extra in OTHERS)]:
            done.result()


def check_install(wheel: Path, extra: str, constraint: Path, work: Path, *beside: Path) -> Path:
    """Test the wheel with an extra, in an environment that sees the packages in `beside`; return its packages."""
    kind = extra or "plain"
    folder = work / f"with-{kind}"  # a folder named langchain would be imported as the package
    python, packages = create_environment(folder / "environment", *beside)
    pip_install(python, "--constraint", str(constraint), f"{wheel}[{extra}]" if extra else str(wheel))
    for script in (f"{kind}_install.py", "install_checks.py"):
        shutil.copy(ROOT / "tests" / "wheel" / script, folder)
    run(python, "-W", "error::DeprecationWarning:meve", str(folder / f"{kind}_install.py"), cwd=work)
    return packages


def run_all_tests(wheel: Path, work: Path) -> None:
    """Run all tests against the wheel, with the libraries of the development environment."""
    say("all tests, against the installed wheel")
    development = [Path(path) for path in sys.path if path.endswith("site-packages")]
    # the .pth files in these folders aren't read, so the editable install stays out
    python, packages = create_environment(work / "whole", *development)
    pip_install(python, "--no-deps", str(wheel))
    tree = work / "tree"
    tree.mkdir()
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES + CONFIGURATIONS:
        shutil.copy(ROOT / file, tree / file)
    if (data := ROOT.parent / "shared").is_dir():
        (work / "shared").symlink_to(data)  # evaluation data beside the project
    say("langchain-mcp-adapters, in an environment of its own")
    adapters, _ = create_environment(work / "adapters")
    pip_install(adapters, "--requirement", str(ROOT / "tests" / "serve" / "langchain_mcp.txt"))
    os.environ["MEVE_LANGCHAIN_MCP"] = adapters
    check = f"import meve, sys; sys.exit(not meve.__file__.startswith({str(packages)!r}))"
    run(python, "-c", check, cwd=tree)
    doctests = [str(packages / package) for package in PACKAGES]
    run(python, "-m", "pytest", "-q", *PARALLEL, "tests", "README.md", "docs", *doctests, cwd=tree)


def create_environment(folder: Path, *beside: Path) -> tuple[str, Path]:
    """Create a virtual environment that also sees the packages in `beside`; return its python and its packages."""
    venv.create(folder, with_pip=False)
    python = str(folder / "bin" / "python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip())
    # a folder named in a .pth file adds its packages but not its .pth files
    (packages / "beside.pth").write_text("".join(f"{path}\n" for path in beside), encoding="utf-8")
    return python, packages


def pip_install(python: str, *arguments: str) -> None:
    """Install into an environment that has no pip; what is never imported isn't compiled."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-compile", *arguments, cwd=Path(python).parent)


def run(*command: str, cwd: Path) -> None:
    """Run a command, which keeps what it compiled for the next one, and exit if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.run(command, cwd=cwd, env=environment, check=False)
    if process.returncode:
        say(f"failed: {' '.join(command)}")
        sys.exit(process.returncode)


def say(text: str) -> None:
    """Print progress."""
    sys.stdout.write(f"wheel: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
