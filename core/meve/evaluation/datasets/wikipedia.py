"""Wikipedia articles as sentences, the setting of the MeVe paper, and questions of the project's own on them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from meve.errors import ConfigurationError
from meve.evaluation.datasets._assembly import answers, assemble, packaged
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Passage

ARTICLES = Path("wikipedia", "articles.jsonl.gz")
"""Where the articles lie in the folder of all sets."""

QUESTIONS = "wikipedia_questions.jsonl"
"""The questions that come with the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """An article."""

    id: str
    title: str
    text: str


def read_articles(path: Path, articles: int = 100) -> tuple[Article, ...]:
    """The first articles of a file with rows {id, title, text}, or all, where it has no more.

    Raises:
        ConfigurationError: `articles` is less than 1.
        DatasetError: the file is absent, cut short or of another format; an id or a title stands there twice.
    """
    if articles < 1:
        raise ConfigurationError(f"articles is {articles!r}: give a whole number of at least 1")
    rows = unique(islice(read(path), articles))
    unique(rows.values(), "title")
    return tuple(Article(id=key, title=row.text("title"), text=row.text("text")) for key, row in rows.items())


def wikipedia(
    path: Path,
    sentences: Callable[[str], Sequence[str]],
    *,
    articles: int = 100,
    questions: Path | None = None,
) -> EvaluationSet:
    """Questions over the sentences of articles.

    Each sentence is a passage `article-id#n`, counted from 0 within its article, without a title: as in the paper, the
    bare sentence is embedded. The article's title is its metadata `article`. Gold are the sentences of a question's
    article that hold every text of its evidence, in this case and whatever the white space; each of them does alone.

    Args:
        path: the articles.
        sentences: cuts a text into sentences; blank ones are left out.
        articles: how many of them are read, from the first on.
        questions: rows {id, question, answers, article, evidence}, where `article` is a title, or null for a question
            that these articles don't answer; None for the questions that come with the package.

    Raises:
        ConfigurationError: `articles` is less than 1.
        DatasetError: articles or questions are absent, cut short or of another format; a question's article isn't among
            those read, or has no sentence with its evidence.
    """
    among: dict[str, Passage] = {}
    by_title: dict[str, list[Passage]] = {}
    for article in read_articles(path, articles):
        texts = (text for text in sentences(article.text) if text.strip())
        by_title[article.title] = [
            Passage(id=f"{article.id}#{n}", text=text, metadata={"article": article.title})
            for n, text in enumerate(texts)
        ]
        among |= {passage.id: passage for passage in by_title[article.title]}
    with packaged(QUESTIONS, questions) as file:
        return assemble("wikipedia", among, _questions(file, by_title))


def _questions(file: Path, by_title: Mapping[str, Sequence[Passage]]) -> Iterator[tuple[Row, Question]]:
    for key, row in unique(read(file)).items():
        answered = "article" not in row.values or row.values["article"] is not None
        question = Question(
            id=key,
            text=row.text("question"),
            gold=_gold(key, row, by_title) if answered else {},
            answers=answers(row.texts("answers")),
            answerable=answered,
        )
        if not answered and row.texts("evidence"):
            raise row.error(f"question {key!r} has evidence, but no article")
        yield row, question


def _gold(key: str, row: Row, by_title: Mapping[str, Sequence[Passage]]) -> dict[str, int]:
    title, evidence = row.text("article"), [_spaced(text) for text in row.texts("evidence")]
    if title not in by_title:
        raise row.error(f"question {key!r} is about {title!r}, which isn't among the {len(by_title)} articles read")
    if not evidence:
        raise row.error(f"question {key!r} has an article, but no evidence")
    gold = {p.id: 1 for p in by_title[title] if all(text in _spaced(p.text) for text in evidence)}
    if not gold:
        raise row.error(f"question {key!r}: no sentence of {title!r} holds all of its evidence, {evidence}")
    return gold


def _spaced(text: str) -> str:
    return " ".join(text.split())
