"""Reader of Wikipedia articles as sentences, the MeVe paper's setting, with the project's own questions on them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from meve.errors import ConfigurationError, missing_extra
from meve.evaluation.datasets._assembly import build_set, packaged_file, read_passages, unique_answers
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, Question, normalize_space
from meve.types import Passage

ARTICLES = Path("wikipedia", "articles.jsonl.gz")
"""The articles' file in the folder with all sets."""

QUESTIONS = "wikipedia_questions.jsonl"
"""The file of questions that comes with the package."""


def read_articles(path: Path, articles: int = 100) -> tuple[Passage, ...]:
    """Return the first articles of a file with rows {id, title, text}; fewer if the file has fewer.

    Raises:
        ConfigurationError: `articles` is less than 1.
        DatasetError: the file is absent, truncated or of another format, or has a duplicate id or title.
    """
    if articles < 1:
        raise ConfigurationError(f"articles must be a whole number of at least 1, got {articles!r}")
    rows = index_rows(islice(read_rows(path), articles))
    index_rows(rows.values(), "title")
    return tuple(read_passages(rows.values()).values())


def read_wikipedia(
    path: Path,
    sentences: Callable[[str], Sequence[str]],
    *,
    articles: int = 100,
    questions: Path | None = None,
) -> EvaluationSet:
    """Return questions over the sentences of articles.

    Each sentence is a passage `article-id#n`, counted from 0 within its article. It has no title, since the paper
    embeds the bare sentence; the article's title is its metadata `article`. Gold are the sentences of a question's
    article that contain every text of its evidence, white space aside; each of them alone answers the question.

    Args:
        path: the file of articles.
        sentences: splits a text into sentences; blank ones are left out.
        articles: how many of the first articles are read.
        questions: rows {id, question, answers, article, evidence}, where `article` is a title, or null for an
            unanswerable question; None for the questions that come with the package.

    Raises:
        ConfigurationError: `articles` is less than 1.
        DatasetError: articles or questions are absent, truncated or of another format; a question's article isn't among
            those read, or has no sentence with its evidence.
    """
    passages: dict[str, Passage] = {}
    by_title: dict[str, list[Passage]] = {}
    for article in read_articles(path, articles):
        texts = (text for text in sentences(article.text) if text.strip())
        by_title[article.title] = [
            Passage(id=f"{article.id}#{n}", text=text, metadata={"article": article.title})
            for n, text in enumerate(texts)
        ]
        passages |= {passage.id: passage for passage in by_title[article.title]}
    with packaged_file(QUESTIONS, questions) as file:
        return build_set("wikipedia", passages, _questions(file, by_title))


def _questions(file: Path, by_title: Mapping[str, Sequence[Passage]]) -> Iterator[tuple[Row, Question]]:
    for key, row in index_rows(read_rows(file)).items():
        answerable = "article" not in row.values or row.values["article"] is not None
        question = Question(
            id=key,
            text=row.text("question"),
            gold=_gold(key, row, by_title) if answerable else {},
            answers=unique_answers(row.texts("answers")),
            answerable=answerable,
        )
        if not answerable and row.texts("evidence"):
            raise row.error(f"question {key!r} has evidence, but no article")
        yield row, question


def _gold(key: str, row: Row, by_title: Mapping[str, Sequence[Passage]]) -> dict[str, int]:
    title, evidence = row.text("article"), [normalize_space(text) for text in row.texts("evidence")]
    if title not in by_title:
        raise row.error(f"question {key!r} is about {title!r}, which isn't among the {len(by_title)} articles read")
    if not evidence:
        raise row.error(f"question {key!r} has an article, but no evidence")
    gold = {p.id: 1 for p in by_title[title] if all(text in normalize_space(p.text) for text in evidence)}
    if not gold:
        raise row.error(f"question {key!r}: no sentence of {title!r} holds all of its evidence, {evidence}")
    return gold


def train_sentence_splitter(texts: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that splits a text into sentences, by nltk's Punkt trained on these texts.

    `nltk.sent_tokenize` is the same algorithm with a table trained on newspapers.

    Source: Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection (2006).

    Args:
        texts: the training texts; a million characters take about five seconds.

    Raises:
        MissingExtraError: nltk isn't installed.
    """
    try:
        from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer
    except ImportError as cause:
        raise missing_extra("nltk", "bench", "splitting articles into sentences") from cause
    trainer = PunktTrainer()
    trainer.train("\n\n".join(texts))
    tokenizer = PunktSentenceTokenizer(trainer.get_params())

    def sentences(text: str) -> list[str]:
        return list(tokenizer.tokenize(text))

    return sentences
