"""Tell text that isn't English, by its script and its function words."""

import re
import unicodedata
from collections import Counter

LETTERS = 400
"""The number of characters that are looked at."""
FOREIGN_SHARE = 0.3
"""The least share of letters of another script than Latin in a text that isn't English."""
LEAST_WORDS = 2
"""The least number of different function words that tell a language."""

CLEAR_LETTERS = 5
"""The least letters of a single function word that tells a language, if no English one stands beside it."""

_WORDS = {
    "English": (
        "the of and to in is are was were be been it its this that these those for with as on at by from "
        "or not what which who whom whose how when where why do does did can could will would should may "
        "might must has have had there their they them he she his her you your we our i my me an a about "
        "into than then if but so"
    ),
    "German": (
        "der die das und ist nicht ein eine einen wie wann warum wer mit für auf zu den dem des von sich "
        "auch wird werden sind wurde kann ich wir sie es oder bei nach aus über viel welche"
    ),
    "French": (
        "le la les des du une est et pas que qui quoi comment quand où pourquoi dans pour avec sur sont "
        "au aux ce cette il elle nous vous ils combien quel quelle ne se par de"
    ),
    "Spanish": (
        "el la los las del una es y no que qué quién cómo cuándo dónde cuánto cuántos para con por son se "
        "su al lo como está más pero este esta de"
    ),
    "Portuguese": (
        "o os as do da dos das uma é e não que quem como quando onde quanto para com por são se seu sua "
        "ao mais mas este esta de em um"
    ),
    "Italian": (
        "il lo gli le della del dei delle una è e non che chi come quando dove perché quanto per con sono "
        "si nel nella di al alla anche più questo questa"
    ),
    "Dutch": (
        "de het een en niet van dat die wat wie hoe wanneer waar waarom voor met op zijn wordt worden ook "
        "aan bij naar uit hij zij je ik wij kan veel hoeveel hebben"
    ),
    "Polish": (
        "i w z na nie się że jest są to co kto jak kiedy gdzie dlaczego czy dla od po do przez ale oraz jego ten"
    ),
    "Swedish": ("och det som en ett är inte på av för med till den hur när var varför vad vem har kan från eller om"),
    "Turkish": ("ve bir bu için ile ne nasıl nerede neden kim mi mı değil çok daha olan olarak da de ki en"),
}
_ENGLISH = frozenset(_WORDS.pop("English").split())
_SHARED = frozenset(["i", "no", "per", "come", "men", "die", "ten", "van", "hat", "den", "pour"])
"""Words that stand in English texts too, and so tell no language."""
_FUNCTION_WORDS = {language: frozenset(words.split()) - _ENGLISH - _SHARED for language, words in _WORDS.items()}
_WORD = re.compile(r"(?<![\w-])[^\W\d_]+(?![\w-])")
"""A word that is no part of a compound, as the E in E-bike is."""


def find_foreign_language(text: str) -> str | None:
    """Return the language or script of a text that isn't English; None for English, and where it can't be told.

    >>> find_foreign_language("Wie viel Sonne brauchen Tomaten?"), find_foreign_language("Сколько солнца?")
    ('German', 'Cyrillic')
    >>> find_foreign_language("Who sang in Los Lobos?"), find_foreign_language("tomato sun"), find_foreign_language("")
    (None, None, None)
    """
    start = text[:LETTERS]
    if not start.isascii():
        scripts = Counter(unicodedata.name(letter, "?").split()[0] for letter in start if letter.isalpha())
        total = scripts.total()
        del scripts["LATIN"], scripts["FULLWIDTH"]
        if scripts and scripts.total() >= FOREIGN_SHARE * total:
            return max(scripts, key=lambda each: scripts[each]).capitalize()
    read = _WORD.findall(start.lower() if start.isupper() else start)
    english = len({word.lower() for word in read} & _ENGLISH)
    words = {word for n, word in enumerate(read) if n == 0 or word.islower()}  # those in capitals may be names
    words_of = {language: {word.lower() for word in words} & own for language, own in _FUNCTION_WORDS.items()}
    language = max(words_of, key=lambda each: len(words_of[each]))
    hits = words_of[language]
    is_clear = len(hits) >= LEAST_WORDS or any(len(word) >= CLEAR_LETTERS for word in hits)
    return language if is_clear and len(hits) > 2 * english else None
