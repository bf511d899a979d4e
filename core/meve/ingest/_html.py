"""Converts HTML to Markdown, without scripts, styles and navigation."""

from dataclasses import dataclass

from meve.errors import IngestError

UNSEEN = ("title", "script", "style", "nav", "noscript", "template", "svg", "iframe", "object")
"""Elements whose text isn't part of the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An HTML page as Markdown."""

    markdown: str
    title: str
    """The text of `<title>`; may be empty."""


def html_to_markdown(html: str) -> Page:
    """Return the text of a page as Markdown; links keep only their words, and images are dropped.

    Raises:
        IngestError: the page is nested too deeply for the parser.
    """
    import warnings

    from bs4 import BeautifulSoup, Comment, Declaration, Doctype, ProcessingInstruction
    from markdownify import MarkdownConverter

    try:
        with warnings.catch_warnings():
            # BeautifulSoup warns about XHTML and about a page as short as a file name; both are intended.
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
