"""A sentence splitter that is trained on the texts themselves, so that no table has to be downloaded."""

from collections.abc import Callable, Iterable

from meve.errors import missing_extra


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
