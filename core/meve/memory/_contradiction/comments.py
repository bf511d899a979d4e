"""Tells sentences that only comment on the one before them, such as "It's hard work.", by rules for English."""

import re

from meve.components._sentence_splitter import split_sentences
from meve.memory._contradiction.statements import parse_values

_OPINIONS = """
annoying amazing awful awkward bad beautiful better big boring brilliant brutal calming cheap cheaper cosy cozy cramped
crap crazy crowded dangerous difficult dull early easier easy exciting exhausting expensive fabulous fantastic far fine
fun good great handy hard harder healthy horrible huge incredible intense interesting late lonely long loud lovely messy
nice nicer noisy okay old-fashioned overpriced packed peaceful perfect pleasant practical pretty pricey quiet relaxing
rough sad scary short slow small spacious strange stressful stupid super terrible tight tiny tiring tough weird
wonderful worse worth worthwhile
"""
_NOUNS = """
bargain blast blessing challenge chore delight dream gem habit hassle headache job joke joy killer lifesaver lot luxury
mess nightmare pain pleasure rip-off steal struggle treat workout
"""
_OPINION = "|".join(sorted({*_OPINIONS.split(), *_NOUNS.split()}))
_COMMENT = re.compile(
    rf"""(?:
      (?:it|that|this|they)(?:['’](?:s|re)|\s+(?:is|was|are|were|isn['’]t|can\s+be|feels|gets|looks|seems))
      (?:\s+(?:always|usually|often|sometimes|really|so|very|such|too|pretty|quite|just|rather|super|still|actually|also
        |an?|bit|little|much|even|kind\s+of|not|more|real|getting|old|hard)){{0,4}}
      \s+(?:{_OPINION})\b
    | (?:it|that|this)\s+(?:(?:always|really|usually|still|just|also)\s+)?(?:calms|clears|cheers|costs|drives|does|gets
        |gives|helps|keeps|makes|pays\s+for|relaxes|saves|suits|takes|tires|wakes|works\s+for)\s+(?:me|us|my|our)\b
    | (?:it|that|this)\s+(?:still\s+)?(?:helps|works)(?:\s+(?:a\s+lot|fine|great|well|so\s+far))?\W*$
    | (?:he|she|they)\s+(?:(?:really|just|absolutely)\s+)?(?:loves?|likes?|enjoys?|hates?)\s+(?:it|that|this|them)\b
      (?=(?:\s+(?:there|here|a\s+lot|so\s+much|so\s+far|too))?\W*$)
    )(?P<rest>.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EXCEPTION = re.compile(r"except\s+(?:when|if|on|in|for)\b", re.IGNORECASE)
_MAY_COMMENT = re.compile(r"[.!?]\s+(?:it|that|this|they|he|she|except)\b", re.IGNORECASE)
_OWN_VIEW = re.compile(
    r"\b(?:than\s+(?:i|we)\s+\w+|(?:for|on|to)\s+(?:me|my|us|our)\b|i\s+(?:know|guess|think|must\s+say|suppose))",
    re.IGNORECASE,
)
_OTHER_FACT = re.compile(r"\b(?:i|i['’]m|i['’]ve|my|we|our|he|she|his|her|who|which|called|named)\b", re.IGNORECASE)


def is_comment(sentence: str) -> bool:
    """Return whether a sentence says how the one before it is, or what it does to the user, and no fact of its own.

    >>> [is_comment(each) for each in ("It's good for my head.", "It belongs to my uncle.", "It's in Oslo.")]
    [True, False, False]
    """
    if _EXCEPTION.match(sentence):
        return True
    match = _COMMENT.match(sentence)
    if match is None:
        return False
    values = parse_values(sentence)
    if values.days or values.names:
        return False
    return not _OTHER_FACT.search(_OWN_VIEW.sub("", match["rest"]))


def without_comments(text: str) -> str:
    """Return a statement without the sentences that only comment on it.

    >>> without_comments("I go climbing on Thursdays. It's good for my head.")
    'I go climbing on Thursdays.'
    """
    if not _MAY_COMMENT.search(text):
        return text
    first, *further = split_sentences(text)
    told = [each for each in further if not is_comment(each)]
    return text if len(told) == len(further) else " ".join([first, *told])
