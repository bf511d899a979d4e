"""From HTML to Markdown: what a reader would see, without scripts, styles and navigation."""

from dataclasses import dataclass

from meve.errors import IngestError

UNSEEN = ("title", "script", "style", "nav", "noscript", "template", "svg", "iframe", "object")
"""Elements that hold no text of the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An HTML page, readable."""

    markdown: str
    title: str
    """What stands in its `<title>`; may be empty."""


def html_to_markdown(html: str) -> Page:
    """The text of a page as Markdown; of links and pictures only the words stay.

    Raises:
        IngestError: it is nested more deeply than the parser can follow.
    """
    import warnings

    from bs4 import BeautifulSoup, Comment, Declaration, Doctype, ProcessingInstruction
    from markdownify import MarkdownConverter

    try:
        with warnings.catch_warnings():
            # XHTML is read as HTML, and a page may be as short as a file name: both are meant.
            warnings.simplefilter("ignore")
            soup = BeautifulSoup(html, "html.parser")
        title = " ".join(soup.title.get_text().split()) if soup.title else ""
        for element in soup(UNSEEN):
            element.decompose()
        for remark in soup(
            string=lambda text: isinstance(text, Comment | Declaration | Doctype | ProcessingInstruction)
        ):
            remark.extract()
        converter = MarkdownConverter(
            heading_style="atx", bullets="-", strip=["a", "img"], escape_asterisks=False, escape_underscores=False
        )
        markdown = converter.convert_soup(soup)
    except RecursionError as cause:
        raise IngestError("HTML that is nested too deeply to be parsed") from cause
    return Page(markdown=markdown.strip(), title=title)
