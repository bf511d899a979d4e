"""Warn once if a question isn't English, which rules, classifier and checks of answers read."""

from meve.components._language import find_foreign_language
from meve.errors import LanguageWarning, warn


def warn_of_language(question: str, warned: set[str]) -> None:
    """Warn if a question isn't English.

    Args:
        question: the question.
        warned: what was warned of before; extended.
    """
    if LanguageWarning.__name__ in warned or (language := find_foreign_language(question)) is None:
        return
    warned.add(LanguageWarning.__name__)
    warn(
        f"the question seems to be {language}, but MemoryRouter reads English: let a language model choose tiers and "
        "check answers, RouterConfig(llm_router=True, grounding='llm'), or give plan and recall a tier",
        LanguageWarning,
        stacklevel=3,
    )
