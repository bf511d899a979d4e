"""Where does a sentence end? Learned from the texts themselves, without a table that would have to be downloaded."""

from collections.abc import Callable, Iterable

from meve.errors import missing_extra


def punkt(texts: Iterable[str]) -> Callable[[str], list[str]]:
    """A function that cuts a text into sentences, by nltk's Punkt, trained on these texts.

    `nltk.sent_tokenize` cuts by the same algorithm, but with a table trained on newspapers.

    Source: Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection (2006).

    Args:
        texts: what abbreviations, and words that begin sentences, are learned from; it takes about five seconds for a
            million characters.

    Raises:
        MissingExtraError: nltk isn't installed.
    """
    try:
        from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer
    except ImportError as cause:
        raise missing_extra("nltk", "bench", "cutting articles into sentences") from cause
    trainer = PunktTrainer()
    trainer.train("\n\n".join(texts))
    tokenizer = PunktSentenceTokenizer(trainer.get_params())

    def sentences(text: str) -> list[str]:
        return list(tokenizer.tokenize(text))

    return sentences
