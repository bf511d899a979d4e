"""Parses HTML whose end tags are left out, as the standard allows; `html.parser` nests such elements in each other."""

from itertools import islice
from typing import Any

from bs4 import BeautifulSoup

STEPS = 16
"""The open elements among which one that ends is looked for."""
_PARAGRAPH_ENDS = """
address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main menu nav
ol p pre section table ul
"""
_CELLS, _ROWS = {"td", "th"}, {"tr", "td", "th"}
_GROUPS = {"thead", "tbody", "tfoot", "caption", "colgroup", *_ROWS}
_LISTS = {"ul", "ol", "menu", "dl", "table", *_CELLS}
ENDED: dict[str, tuple[set[str], set[str]]] = {
    **dict.fromkeys(_PARAGRAPH_ENDS.split(), ({"p"}, {"table", "caption", "button", "object", *_CELLS})),
    "li": ({"li", "p"}, _LISTS),
    **dict.fromkeys(("dt", "dd"), ({"dt", "dd", "p"}, _LISTS)),
    "option": ({"option"}, {"select", "datalist", "optgroup"}),
    "optgroup": ({"option", "optgroup"}, {"select"}),
    **dict.fromkeys(("td", "th"), (_CELLS, {"tr", "table"})),
    "tr": (_ROWS, {"table"}),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (_GROUPS, {"table"})),
}
"""By the name of an element: the open elements that its start ends, and those out of which it doesn't reach."""


class Page(BeautifulSoup):
    """A parsed page."""

    def handle_starttag(self, name: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as bs4 has it
        """End the elements that can't contain an element before it starts."""
        ended, within = ENDED.get(name, ((), ()))
        for tag in list(islice(reversed(self.tagStack), STEPS)) if ended else ():
            if tag.name in within:
                break
            if tag.name in ended:
                self.handle_endtag(tag.name)
        return super().handle_starttag(name, *arguments, **options)
