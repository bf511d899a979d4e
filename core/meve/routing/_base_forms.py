"""Reduces English words to stems that irregular forms share: `ran` and `running` to `run`."""

from collections.abc import Iterable

from meve.components.lexical.analyzers import stem, words

_LISTED = """
awake awoke awoken, beat beaten, become became, begin began begun, bend bent, bite bitten, bleed bled, blow blew
blown, break broke broken, bring brought, build built, burn burnt, buy bought, catch caught, choose chose chosen,
cling clung, deal dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten,
fall fell fallen, feed fed, feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, forgive
forgave forgiven, freeze froze frozen, give gave given, grow grew grown, hang hung, hear heard, hide hid hidden, hold
held, keep kept, kneel knelt, lead led, leap leapt, learn learnt, leave left, lend lent, light lit, lose lost, meet
met, overcome overcame, pay paid, ride rode ridden, ring rang rung, rise risen, run ran, see saw seen, seek sought,
sell sold, send sent, sew sewn, shake shook shaken, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink
sank sunk, sit sat, sleep slept, slide slid, smell smelt, speak spoke spoken, spill spilt, spin spun, stand stood,
steal stole stolen, stick stuck, sting stung, strike struck, swear swore sworn, sweep swept, swim swam swum, swing
swung, teach taught, tear tore torn, think thought, throw threw thrown, understand understood, wake woke woken, wear
wore worn, weave wove woven, win won, withdraw withdrew withdrawn, write wrote written, child children, foot feet,
knife knives, life lives, loaf loaves, man men, mouse mice, person people, shelf shelves, tooth teeth, wife wives,
woman women
"""
_BASES = {
    form: base for base, *forms in (entry.split() for entry in _LISTED.replace("\n", " ").split(",")) for form in forms
}
_NOUNS = {"choice": "choose", "death": "die", "flight": "fly", "loss": "lose", "marriage": "marry", "weight": "weigh"}
"""Nouns of verbs whose stems differ."""
_FREQUENT = frozenset(
    ["been", "had", "gone", "done", "made", "taken", "said", "come", "read", "put", "cut", "set", "hit", "quit", "run"]
)
"""Forms of the past that share their stem with other words, or that say nothing about a topic."""


def base_stems(text: str) -> Iterable[str]:
    """Yield the stem of each word of a text, the same for all forms of an English verb or noun.

    >>> list(base_stems("I sang while the children ran"))
    ['i', 'sing', 'while', 'the', 'child', 'run']
    """
    return (base_stem(word) for word in words(text))


def base_stem(word: str) -> str:
    """Return the stem of an English word in lower case, the same for all its forms, and for some nouns of a verb."""
    return stem(_BASES.get(word) or _NOUNS.get(word, word))


def is_past(word: str) -> bool:
    """Return whether a word in lower case may be a verb in the past, or its participle.

    >>> is_past("lived"), is_past("drove"), is_past("live")
    (True, True, False)
    """
    return word in _BASES or word in _FREQUENT or word.endswith("ed")
