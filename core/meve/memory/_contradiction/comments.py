"""Tells sentences that only comment on the one before them, such as "It's hard work.", by rules for English."""

import re

from meve.components._sentence_splitter import split_sentences

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
_DEGREE = (
    r"(?:(?:always|usually|often|sometimes|really|so|very|such|too|pretty|quite|just|rather|super|still|actually|also"
    r"|an?|bit|little|much|even|kind\s+of|not|more|real|getting|old|hard)\s+){0,4}"
)
_COMMENT = re.compile(
    rf"""(?:
      (?:it|that|this|they)(?:['’](?:s|re)|\s+(?:is|was|are|were|isn['’]t|can\s+be|feels|gets|looks|seems))
      \s+{_DEGREE}(?:{_OPINION})(?:\s+(?:{_OPINION}|value|work|exercise|stuff|deal|idea|habit|feeling|thing))?
      (?:,?\s+(?:(?:but|and|yet)\s+(?:the\s+\w+\s+is\s+)?{_DEGREE}(?:{_OPINION})(?:\s+it)?
        |for\s+(?:me|us|my\s+(?:head|mind|mood|soul))|than\s+(?:i|we)\s+(?:thought|expected|hoped|feared|imagined)
        |i\s+(?:know|guess|think|must\s+say|suppose)|though|honestly|there|here|now|sometimes))*
    | (?:it|that|this)\s+(?:(?:always|really|usually|still|just|also)\s+)?(?:
        (?:calms|cheers|relaxes|tires|wakes|suits|works\s+for)\s+(?:me|us)(?:\s+(?:up|down|out))?
        |clears\s+my\s+(?:head|mind)|helps\s+me\s+(?:relax|unwind|recharge|chill\s+out|focus)|does\s+me\s+good|makes\s+me\s+(?:happy|smile|laugh)
        |keeps\s+me\s+(?:busy|fit|going|sane|in\s+shape)|pays\s+for\s+(?:my|our)\s+holidays
        |saves\s+(?:me|us)\s+(?:\w+\s+){{0,3}}(?:time|money|minutes|hours|days|euros|dollars|pounds))
    | (?:it|that|this)\s+(?:still\s+)?(?:helps|works)(?:\s+(?:a\s+lot|fine|great|well|so\s+far))?
    | (?:he|she|they)\s+(?:(?:really|just|absolutely)\s+)?(?:loves?|likes?|enjoys?|hates?)\s+(?:it|that|this|them)
      (?:\s+(?:there|here|a\s+lot|so\s+much|so\s+far|too))?
    | except\s+(?:when|if)\s+it(?:['’]s|\s+is|\s+\w+s)(?:\s+\w+){{0,2}}
      (?:,?\s+then\s+(?:i|we)\s+(?:suffer|walk|drive|skip\s+it|don['’]t|stay\s+home|take\s+the\s+(?:bus|tram|train)))?
    )\W*""",
    re.IGNORECASE | re.VERBOSE,
)
"""A whole sentence, so that none tells a fact beside its opinion: "It's hard since the stroke"."""
_MAY_COMMENT = re.compile(r"[.!?]\s+(?:it|that|this|they|he|she|except)\b", re.IGNORECASE)


def is_comment(sentence: str) -> bool:
    """Return whether a sentence says how the one before it is, or what it does to the user, and no fact of its own.

    >>> [is_comment(each) for each in ("It's good for my head.", "It gives me migraines.", "It's in Oslo.")]
    [True, False, False]
    """
    return _COMMENT.fullmatch(sentence) is not None


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
