"""The inspector in Chromium: each view, each action, the keyboard, a phone's width, light and dark."""

import json
import re
import shutil
from datetime import timedelta

import pytest

from tests.serve.servers import make_tokens, open_memory, serve

sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: the inspector's page needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NOT TESTED: the inspector's page needs Chromium")
expect = sync_api.expect
expect.set_options(timeout=20_000)
SCRIPT = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
REORDERED, HEBREW = "an\u202ena\u200b", "\u05d3\u05e0\u05d4"
QUESTION = "Water tomatoes three times a week with cold tea"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(index, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspected")
    with open_memory(folder) as memory:
        tokens, given = make_tokens(folder)
        given |= {name: tokens.grant(name, may_inspect=True) for name in (REORDERED, HEBREW)}
        with serve(index, memory, tokens=tokens) as served:
            served.tokens, served.memory = given, memory
            yield served


@pytest.fixture
def memory(server):
    """Return the memory, with a few of anna's."""
    memory = server.memory
    for held in memory.forget_user(user_id="anna").held:
        memory.release(held, user_id="anna")
        memory.delete(held, user_id="anna")
    memory.add("Anna lives in Oslo.", user_id="anna", id="oslo")
    memory.supersede("oslo", "Anna lives in Bergen.", user_id="anna", id="bergen")
    memory.add("Anna has a ticket to Rome.", user_id="anna", id="ticket", ttl=timedelta(days=9))
    memory.add("The code of the safe is 4711.", user_id="anna", id="safe", policy_class="private")
    memory.add(SCRIPT, user_id="anna", id="script")
    return memory


@pytest.fixture
def page(browser, server):
    """Return a page that fails its test for an error of the console, or a request elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, problems = context.new_page(), []
    page.set_default_timeout(20_000)
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" and "status of 4" not in m.text else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((server.url, "data:", "blob:")) else problems.append(r.url))
    yield page
    assert page.title() != "taken"
    assert context.cookies() == []
    context.close()
    assert problems == []


@pytest.fixture
def sign_in(page, server):
    """Return a function that opens a view with somebody's token."""

    def open_view(view="", who="anna's inspector"):
        page.goto(f"{server.url}/inspector#{view}")
        page.get_by_label("Token").fill(server.tokens[who])
        page.keyboard.press("Enter")
        expect(page.get_by_text("Memory of")).to_be_visible()

    return open_view


def see_rows(page, panel=0):
    """Return by id whether the candidates of a panel are kept."""
    rows = page.locator(".panel").nth(panel).locator(".rows li")
    rows.first.wait_for()
    return {row.get_attribute("data-id"): row.get_attribute("class") for row in rows.all()}


def slide(page, label, value, panel=0):
    page.locator(".panel").nth(panel).get_by_label(label).fill(str(value))


def test_wrong_token_is_refused_and_a_right_one_stays_until_signing_out(page, server, sign_in, memory):
    page.goto(f"{server.url}/inspector")
    page.get_by_label("Token").fill("mvs_wrong")
    page.get_by_role("button", name="Sign in").last.click()
    expect(page.get_by_role("alert")).to_contain_text("doesn't know this token")
    page.get_by_label("Token").fill(server.tokens["anna's inspector"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Documents")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Memory of anna")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_token_of_an_agent_sees_the_documents_only(page, sign_in, memory):
    sign_in("memories", who="anna")
    expect(page.get_by_text("doesn't permit to inspect")).to_be_visible()
    expect(page.get_by_role("heading", name="Documents")).to_be_visible()
    assert page.get_by_role("link").all_inner_texts() == ["Skip to content", "Documents"]


def test_sliders_run_the_question_again_and_two_settings_differ(page, sign_in, memory):
    sign_in()
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    first = see_rows(page)
    assert {"yes", "no"} <= set(first.values())
    first_kept = next(name for name, kind in first.items() if kind == "yes")
    expect(page.locator(".flow-head strong")).to_have_text(["retrieve", "verify", "fallback", "prioritize", "budget"])
    page.locator(".rows summary").first.press("Enter")
    expect(page.locator(".rows .more").first).to_contain_text("verified")
    page.get_by_role("button", name="Compare").click()
    see_rows(page, 1)
    page.locator(".panel").nth(1).get_by_label("Show passages").uncheck()
    slide(page, "Threshold", 1, panel=1)
    expect(page.locator(f".panel:nth-child(2) li[data-id={first_kept}]")).to_have_class("no differs")
    expect(page.locator(f".panel:nth-child(1) li[data-id={first_kept}]")).to_have_class("yes differs")
    expect(page.locator(".panel").nth(1).get_by_text("A model gets no passage")).to_be_visible()
    page.locator(".panel").nth(1).get_by_label("Show passages").check()
    expect(page.locator(".panel:nth-child(2) li.maybe")).not_to_have_count(0)
    slide(page, "Budget", 16)
    expect(page.locator(".panel").first.locator(".summary")).to_contain_text("of 16 tokens")
    slide(page, "Redundancy", 0.1)
    page.locator(".panel").first.get_by_label("Drop all similar").check()
    expect(page.locator(".panel").first.locator(".phase").nth(3)).to_contain_text("> 0.10")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".panel")).to_have_count(1)
    expect(page.locator(".differs")).to_have_count(0)


def test_search_shows_what_an_agent_gets_and_everything_on_a_topic(page, sign_in, memory):
    sign_in("search")
    page.get_by_label("Topic").fill("Where does Anna live? The code of the safe?")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".card[data-id=oslo]")).to_contain_text("replaced by bergen")
    expect(page.locator(".card[data-id=safe]")).to_contain_text("private")
    shown = page.locator("pre").inner_text()
    assert "Anna lives in Bergen." in shown
    assert "4711" not in shown
    assert "Oslo" not in shown
    page.locator(".card[data-id=oslo]").get_by_role("button", name="Restore").click()
    expect(page.locator(".card[data-id=oslo]")).not_to_contain_text("replaced by")
    assert memory.get("oslo", user_id="anna").superseded_by is None


def test_memory_is_shown_held_released_and_forgotten_by_keyboard(page, sign_in, memory):
    sign_in("memories")
    page.get_by_role("button", name="Anna lives in Bergen.").press("Enter")
    dialog = page.get_by_role("dialog", name="Memory", exact=True)
    expect(dialog.get_by_role("img")).to_have_attribute("aria-label", re.compile("Usefulness 30 of 100 now"))
    expect(dialog.locator(".card")).to_contain_text("Anna lives in Oslo.")
    expect(dialog.get_by_role("cell", name="add").first).to_be_visible()
    dialog.get_by_role("button", name="Hold").press("Enter")
    page.get_by_label("Why").fill("a claim")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("on hold: a claim").first).to_be_visible()
    assert memory.get("bergen", user_id="anna").hold == "a claim"
    expect(dialog.get_by_role("button", name="Forget")).to_have_count(0)
    dialog.get_by_role("button", name="Release").press("Enter")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Hold")).to_be_visible()
    dialog.get_by_role("button", name="Forget").press("Enter")
    question = page.get_by_role("dialog", name="Forget this for good?")
    expect(question).to_contain_text("2 memories will be erased")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(dialog.get_by_role("button", name="Forget")).to_be_focused()
    assert memory.get("bergen", user_id="anna")
    page.keyboard.press("Enter")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-id=bergen]")).to_have_count(0)
    assert {each.id for each in memory.list(user_id="anna", include_superseded=True)} == {"ticket", "safe", "script"}


def test_keyboard_reaches_every_control_and_shows_where_it_is(page, sign_in, memory):
    sign_in("memories")
    expect(page.locator(".card")).to_have_count(4)
    wanted = page.evaluate(FOCUSABLE)
    assert len(wanted) > 12
    page.evaluate("document.activeElement.blur()")
    met = []
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        met.append(page.evaluate(FOCUSED))
    assert [each for each in wanted if each not in [name for name, _ in met]] == []
    assert [name for name, outline in met if name in wanted and outline < 2] == []


def test_focus_stays_in_the_content_after_an_action(page, sign_in, memory):
    sign_in("memories")
    expect(page.locator(".card")).to_have_count(4)
    page.get_by_label("Replaced").check()
    page.get_by_role("button", name="Restore: Anna lives in Oslo.").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Restored")
    expect(page.locator("main")).to_be_focused()
    page.get_by_label("Current").check()
    page.get_by_role("button", name="Anna lives in Oslo.").press("Enter")
    page.get_by_role("button", name="Hold…").press("Enter")
    page.get_by_label("Why").fill("a claim")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("On hold.")
    expect(page.locator("dialog .memory")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("On hold.")


def test_lists_show_what_was_replaced_what_ends_and_a_part_of_the_text(page, sign_in, memory):
    sign_in("memories")
    expect(page.locator(".card")).to_have_count(4)
    page.get_by_label("Current").press("ArrowRight")
    expect(page.get_by_label("Ending soon")).to_be_checked()
    expect(page.locator(".card")).to_have_count(2)  # private memories end as well
    page.get_by_label("Within days").fill("8")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Ending soon 1")).to_be_visible()
    page.get_by_text("Replaced").click()
    expect(page.locator(".card")).to_contain_text("Now: Anna lives in Bergen.")
    page.get_by_role("button", name="Restore: Anna lives in Oslo.").click()
    expect(page.get_by_role("status")).to_contain_text("Restored")
    page.get_by_text("Current").click()
    expect(page.locator(".card")).to_have_count(5)
    page.get_by_label("Find").fill("OSLO")
    expect(page.locator(".card")).to_have_count(1)


def test_stored_script_stays_text_in_every_view(page, sign_in, memory):
    sign_in("memories")
    page.get_by_role("button", name=SCRIPT).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".text").first).to_have_text(SCRIPT)
    dialog.get_by_role("button", name="Hold").click()
    page.get_by_label("Why").fill(SCRIPT)
    page.keyboard.press("Enter")
    expect(dialog.get_by_text(f"on hold: {SCRIPT}").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Search").click()
    page.get_by_label("Topic").fill(SCRIPT)
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-id=script] button.text")).to_have_text(SCRIPT)
    expect(page.locator(".rows .name").first).to_contain_text("<script>")
    page.get_by_role("link", name="Log").click()
    expect(page.get_by_role("button", name="script").first).to_be_visible()
    assert page.locator("main script, main img, dialog script, dialog img").count() == 0


def test_marks_that_reorder_text_are_shown(page, sign_in, memory):
    """A stored U+202E turns nothing round that the page says itself."""
    memory.add("Anna likes \u202ewater.", user_id="anna", id="mark\u202e", reason="told\u2066")
    sign_in("memories")
    page.get_by_role("button", name="Anna likes [U+202E]water.").click()
    expect(page.get_by_role("dialog")).to_contain_text("(told[U+2066])")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Log").click()
    expect(page.get_by_role("button", name="mark[U+202E]").first).to_be_visible()


def test_long_text_leaves_the_actions_in_reach(page, sign_in, memory):
    memory.add("Anna's novel:" + "\n" * 900 + "word " * 19_000, user_id="anna", id="novel")
    sign_in("memories")
    card = page.locator(".card[data-id=novel]")
    assert card.bounding_box()["height"] < 400
    card.locator("button.text").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Forget…")).to_be_in_viewport()


def test_export_is_downloaded_and_everything_is_forgotten_after_confirmation(page, sign_in, memory):
    sign_in("memories")
    page.get_by_role("button", name="Export…").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    data = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert download.value.suggested_filename == "memory-anna.json"
    assert {each["id"] for each in data["records"]} == {"bergen", "ticket", "safe", "script"}
    page.get_by_role("button", name="Forget everything…").click()
    expect(page.get_by_role("dialog")).to_contain_text("5 memories will be erased. This can't be undone.")
    page.get_by_label("Type anna to confirm").fill("bob")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Type anna")
    assert len(memory.list(user_id="anna")) == 4
    page.get_by_label("Type anna to confirm").fill("anna")
    page.keyboard.press("Enter")
    expect(page.get_by_text("None.")).to_be_visible()
    assert memory.list(user_id="anna", include_superseded=True) == []


@pytest.mark.parametrize(
    ("user", "shown", "typed"),
    [
        (REORDERED, "an[U+202E]na[U+200B]", "an[U+202E]na[U+200B]"),
        (REORDERED, "an[U+202E]na[U+200B]", REORDERED),
        (HEBREW, HEBREW, HEBREW),
    ],
)
def test_name_with_marks_is_spelled_and_confirmed_as_shown_or_as_it_is(page, sign_in, memory, user, shown, typed):
    """Nobody can type a mark that isn't seen, and a name mustn't turn round the words beside it."""
    memory.add("Likes tea.", user_id=user, id="tea")
    sign_in("memories", who=user)
    expect(page.get_by_text(f"Memory of {shown}")).to_be_visible()
    page.get_by_role("button", name="Forget everything…").click()
    expect(page.get_by_role("dialog").locator("bdi")).to_have_text([shown, shown])
    field = page.get_by_label(f"Type {shown} to confirm")
    field.fill("anna")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(f"Type {shown} to confirm.")
    field.fill(typed)
    page.keyboard.press("Enter")
    expect(page.get_by_text("None.")).to_be_visible()
    assert memory.list(user_id=user) == []


def test_log_shows_own_entries_erasures_and_whether_it_is_intact(page, sign_in, memory):
    memory.add("Bob's secret.", user_id="bob", id="of-bob")
    memory.delete("ticket", user_id="anna", reason="a wish")
    sign_in("log")
    expect(page.get_by_role("cell", name="a wish")).to_be_visible()
    assert "of-bob" not in page.locator("main").inner_text()
    page.get_by_label("Only what was erased").check()
    expect(page.get_by_role("cell", name="supersede")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="a wish")).to_contain_text("ticket")
    page.get_by_role("button", name="Check the log").click()
    expect(page.locator(".verdict")).to_contain_text("The log is intact")
    expect(page.locator(".chain")).to_contain_text("It has no key")


def test_reader_is_offered_no_change(page, sign_in, memory):
    sign_in("memories", who="looker")
    expect(page.get_by_text("read only")).to_be_visible()
    expect(page.get_by_role("button", name="Forget everything…")).to_have_count(0)
    page.get_by_role("button", name="Anna lives in Bergen.").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img")).to_be_visible()
    for name in ("Hold", "Forget", "Restore"):
        expect(dialog.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible_and_a_phone_shows_all_of_the_width(page, sign_in, memory, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in()
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    see_rows(page)
    page.get_by_role("button", name="Compare").click()
    see_rows(page, 1)
    check_view(page)
    page.get_by_role("link", name="Search").click()
    page.get_by_label("Topic").fill("Anna")
    page.keyboard.press("Enter")
    page.locator(".card").first.wait_for()
    check_view(page)
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("button", name="Anna lives in Bergen.").click()
    page.locator(".timeline svg").wait_for()
    check_view(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Log").click()
    page.locator(".entries td").first.wait_for()
    check_view(page)


def check_view(page):
    """Check that nothing is wider than the page, each control has a name, and each text a contrast of 4.5."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(PALE) == []


FOCUSABLE = """() => [...document.querySelectorAll("a, button, input, summary")]
  .filter((e) => e.checkVisibility() && !(e.type === "radio" && !e.checked)).map((e) => e.outerHTML)"""
FOCUSED = """() => {
  const e = document.activeElement;
  const seen = e.type === "radio" ? e.nextElementSibling : e;
  const style = getComputedStyle(seen);
  return [e.outerHTML, style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth)];
}"""
UNNAMED = """() => [...document.querySelectorAll("button, input, a, dialog")]
  .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length || e.getAttribute("aria-labelledby")))
  .map((e) => e.outerHTML)"""
PALE = """() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const paper = (e) => {
    for (; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return parse(getComputedStyle(document.documentElement).colorScheme === "dark" ? "0 0 0" : "255 255 255");
  };
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = (e) => { for (; e; e = e.parentElement) if (getComputedStyle(e).opacity < 1) return true; };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const pale = (e) => {
    const [one, other] = [parse(getComputedStyle(e).color), paper(e)].map(light).sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05) < 4.5 || faint(e);
  };
  return [...document.querySelectorAll("body *")]
    .filter((e) => own(e) && e.checkVisibility() && !e.closest("noscript") && !e.closest("svg") && pale(e))
    .map((e) => e.outerHTML.slice(0, 120));
}"""
