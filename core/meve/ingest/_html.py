"""Converts HTML to Markdown, without scripts, styles and navigation."""

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from meve.errors import IngestError

UNSEEN = ("title", "script", "style", "nav", "noscript", "template", "svg", "iframe", "object", "button")
"""Elements whose text isn't part of the document."""
TITLES = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary"))
"""Elements in which a button may be the title of what it opens."""
NEAR = 32
"""The elements and texts around a button that are looked at."""
CONTENT = ("main", "article", "h1")
"""Elements that navigation doesn't contain; nor does it hold more than half of a page's text."""
PARTS = re.compile(r"^(?!(html|body|main|article)$)")
"""Elements that may be navigation: no element that holds the whole page."""
NAVIGATION = re.compile(r"^(nav(bar|igation|header|footer|links?)?|breadcrumbs?|toc)$", re.IGNORECASE)
"""Classes and roles of elements that lead to other pages or sections."""
INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
"""An inline style that hides an element."""
OWN_LINK = re.compile(r"\s*(?:[#\u00b6\u00a7\U0001f517]|(?:skip|jump) to [\w ]{1,40})\s*", re.IGNORECASE)
"""The text of a link from a heading to itself, or past the navigation."""
BLANKS = re.compile(r"[ \t\n]{64,}+")
"""Long runs of blanks, which markdownify reads in quadratic time."""
NOTE = re.compile(r"^(admonition.*|note|tip|hint|info|important|warning|caution|danger|attention)$", re.IGNORECASE)
"""Classes of boxes beside the text; a heading in one begins no section."""


def html_to_markdown(html: str, *, leave_out: Callable[[Any], Sequence[Any]] = lambda _: ()) -> tuple[str, str]:
    """Return the text of a page as Markdown, and its title, which may be empty.

    Links keep their words, and mail addresses and telephone numbers; images are dropped.

    Args:
        html: the page.
        leave_out: returns elements and texts of the parsed page that are left out.

    Raises:
        IngestError: the page is nested too deeply for the parser.
    """
    import warnings

    from bs4 import Comment, Declaration, Doctype, ProcessingInstruction

    from meve.ingest._html_parser import Page
    from meve.ingest._html_tables import unwrap_layouts
    from meve.ingest._html_writer import MarkdownWriter

    html = BLANKS.sub(lambda run: "\n\n" if "\n" in run[0] else " " * 64, html)
    last = html.rfind(">") + 1
    html = html[:last] + html[last:].replace("<", "&lt;")  # the parser reads unclosed tags in quadratic time
    try:
        with warnings.catch_warnings():
            # BeautifulSoup warns about XHTML and about a page as short as a file name; both are intended.
            warnings.simplefilter("ignore")
            soup = Page(html, "html.parser")
        title = " ".join(soup.title.get_text().split()) if soup.title else ""
        own_links = (link for link in soup("a", href=re.compile("^#")) if OWN_LINK.fullmatch(link.get_text()))
        unseen = (each for each in soup(UNSEEN) if each.name != "button" or not _is_title(each))
        _remove([*_find_hidden(soup), *unseen, *own_links])
        half = len("".join(soup.get_text().split())) / 2
        for attribute, value in (("class", NAVIGATION), ("role", re.compile("^navigation$"))):
            parts = [each for each in soup(PARTS, {attribute: value}) if not each.find(CONTENT)]
            _remove([each for each in parts if len("".join(each.get_text().split())) <= half])
        for box in soup(["div", "aside", "blockquote"], class_=NOTE):
            for heading in [*box(re.compile(r"^h[1-6]$")), *box("div", class_="title")]:
                strong = soup.new_tag("strong")
                strong.extend(list(heading.contents))
                heading.append(strong)
                heading.name = "p"
        markup = Comment | Declaration | Doctype | ProcessingInstruction
        _remove(soup(string=lambda text: isinstance(text, markup)))
        _remove(leave_out(soup))
        unwrap_layouts(soup)
        markdown = MarkdownWriter().convert_soup(soup)
    except RecursionError as cause:
        raise IngestError("HTML that is nested too deeply to be parsed") from cause
    return markdown.strip(), title


def _remove(elements: Sequence[Any]) -> None:
    """Take elements out of their page in linear time; bs4's `decompose` reads all siblings for each."""
    gone: set[int] = set()
    parents = {}
    for element in elements:
        if id(element) in gone:
            continue
        gone.add(id(element))
        last = element
        for last in getattr(element, "descendants", ()):
            gone.add(id(last))
        before, after = element.previous_element, last.next_element
        left, right = element.previous_sibling, element.next_sibling
        if before is not None:
            before.next_element = after
        if after is not None:
            after.previous_element = before
        if left is not None:
            left.next_sibling = right
        if right is not None:
            right.previous_sibling = left
        parents[id(element.parent)] = element.parent
    for parent in parents.values():
        parent.contents = [child for child in parent.contents if id(child) not in gone]


def _is_title(button: Any) -> bool:  # noqa: ANN401 - imported late
    """Return whether a button is all the text of a heading or term, as those that open the parts of an accordion."""
    from bs4.element import NavigableString

    title = next((each for each in islice(button.parents, NEAR) if each.name in TITLES), None)
    parts = islice(title.descendants, NEAR) if title is not None else ()
    texts = [each for each in parts if type(each) is NavigableString and each.strip()]
    return bool(texts) and all(any(each is button for each in islice(text.parents, NEAR)) for text in texts)


def _find_hidden(soup: Any) -> list[Any]:  # noqa: ANN401 - imported late
    """Return the elements that a browser doesn't show, unless its search or a control such as a tab shows them."""
    controls = soup(attrs={"aria-controls": True})
    shown = {name for control in controls for name in control["aria-controls"].split()}

    def is_hidden(element: Any) -> bool:  # noqa: ANN401
        by_attribute = element.get("hidden", "until-found").strip().lower() != "until-found"
        if not by_attribute and not INVISIBLE.search(element.get("style", "")):
            return False
        return (
            element.name not in {"html", "body"}
            and element.get("role") != "tabpanel"
            and element.get("id") not in shown
        )

    return [element for element in soup(True) if is_hidden(element)]
