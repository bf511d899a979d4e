"""Take the pictures of the inspector for docs/images: `python -m benchmarks.inspector_pictures`.

It serves the Python language reference and an invented memory, and needs playwright, Pillow and Chromium.
"""

import argparse
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from meve.cli.language_reference import open_demo_index
from meve.memory import GovernedMemory
from meve.testing.fakes import FakeClock

CHROMIUM = "/usr/bin/chromium"
QUESTION = "What happens if no except clause matches the exception?"
TOPIC = "Where does Anna live?"
MODES = {"": ((1280, 900), "light"), "-dark": ((1280, 900), "dark"), "-phone": ((390, 844), "light"),
         "-phone-dark": ((390, 844), "dark")}  # fmt: skip


def make_memory(file: Path) -> None:
    """Write a memory of sixty days."""
    clock = FakeClock(datetime.now(UTC) - timedelta(days=60))
    with GovernedMemory.open(file, clock=clock) as memory:
        memory.add("Anna lives in Oslo.", user_id="anna", id="home-oslo", tags=["home"])
        memory.add("Anna's sister Marit keeps bees in Bergen.", user_id="anna", id="sister")
        wrong = memory.add("Anna is allergic to nuts.", user_id="anna", id="allergy")
        clock.advance(timedelta(days=20))
        for question, answer in ((TOPIC, "Anna lives in Oslo."), ("Who keeps bees?", "Her sister Marit keeps bees.")):
            memory.reflect(memory.search(question, user_id="anna"), answer=answer)
        clock.advance(timedelta(days=10))
        memory.supersede("home-oslo", "Anna lives in Trondheim.", user_id="anna", source="chat_user", id="home")
        memory.add("Anna wants answers in metric units.", user_id="anna", policy_class="instruction", id="units")
        clock.advance(timedelta(days=28))
        memory.reflect(memory.search(TOPIC, user_id="anna"), answer="Anna lives in Trondheim.")
        memory.delete(wrong.id, user_id="anna", reason="the user asked for it")
        memory.add("Anna plans to visit Rome in spring.", user_id="anna", policy_class="intent_bound", id="rome")
        memory.add("Anna's code for the garage is 4711.", user_id="anna", policy_class="private", id="garage")
        memory.add("Anna signed the contract with Vik AS.", user_id="anna", id="contract")
        memory.hold("contract", user_id="anna", why="dispute with Vik AS")
        memory.add("Anna has a dentist appointment on Monday.", user_id="anna", ttl=timedelta(days=9), id="dentist",
                   source="chat_assistant")  # fmt: skip
        memory.add("Note to the model: <script>alert(1)</script> is only text.", user_id="anna", id="script")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run `meve serve`, and yield its URL."""
    command = [sys.executable, "-m", "meve", "serve", "--port", "0", "--index", folder / "index", "--memory",
               folder / "memory.db", "--user", "anna"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"inspector at (\S+),", process.stdout.readline())
        assert found, "the server didn't start"
        yield found[1]
    finally:
        process.terminate()
        process.wait()


def show_documents(page: Page) -> None:
    page.get_by_label("Question").fill(QUESTION)
    for _ in range(2):  # the second time, nothing is read again
        page.get_by_role("button", name="Ask").click()
        page.locator(".result:not([aria-busy]) .rows li").first.wait_for()


def show_comparison(page: Page) -> None:
    show_documents(page)
    page.get_by_role("button", name="Compare").click()
    page.get_by_label("Threshold").nth(1).fill("0.9")
    page.locator(".differs").first.wait_for()


def show_search(page: Page) -> None:
    page.get_by_label("Topic").fill(TOPIC)
    page.get_by_role("button", name="Search").click()
    page.locator(".card").first.wait_for()


def show_memories(page: Page) -> None:
    page.locator(".card").first.wait_for()


def show_memory(page: Page) -> None:
    page.get_by_role("button", name="Anna lives in Trondheim.").click()
    page.locator(".timeline svg").wait_for()


def show_forgetting(page: Page) -> None:
    show_memory(page)
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Forget", exact=True).wait_for()


def show_log(page: Page) -> None:
    page.get_by_role("button", name="Check the log").click()
    page.locator(".verdict").first.wait_for()


VIEWS = {
    "documents": ("documents", show_documents), "comparison": ("documents", show_comparison),
    "search": ("search", show_search), "memories": ("memories", show_memories), "memory": ("memories", show_memory),
    "forgetting": ("memories", show_forgetting), "log": ("log", show_log),
}  # fmt: skip
IN_DOCS = ("documents", "comparison-dark", "search", "memories-phone-dark", "memory", "log", "documents-phone")


def take(page: Page, file: Path) -> None:
    """Write what the page shows as WebP."""
    image = Image.open(io.BytesIO(page.screenshot()))
    image.save(file.with_suffix(".webp"), lossless=False, quality=70, method=6)
    if file.parent != Path("docs/images"):
        image.save(file.with_suffix(".png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="take all pictures, also as PNG, into this folder")
    parser.add_argument("--data", type=Path, help="keep the index and the memory in this folder")
    parser.add_argument("--only", help="a part of the pictures' names")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary, sync_playwright() as playwright:
        data = given.data or Path(temporary)
        open_demo_index(data / "index")
        if not (data / "memory.db").exists():
            make_memory(data / "memory.db")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with serving(data) as url:
            for mode, ((width, height), scheme) in MODES.items():
                for name, (view, show) in VIEWS.items():
                    wanted = name + mode
                    if (not given.out and wanted not in IN_DOCS) or (given.only or "") not in wanted:
                        continue
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                    page.on("console", lambda message: print(message.type, message.text))
                    page.on("pageerror", lambda error: print("ERROR", error))
                    page.goto(f"{url}#{view}")
                    show(page)
                    take(page, (given.out or Path("docs/images")) / f"inspector-{wanted}")
                    page.close()
        browser.close()


if __name__ == "__main__":
    main()
