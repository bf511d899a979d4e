"""Removes what a user pasted into a turn: code, tracebacks, logs and quoted documents. By rules for English."""

import re

from meve.memory._classify.pasted_blocks import GAP, remove_blocks
from meve.memory._classify.small_talk import FIRST_PERSON

_FENCED = re.compile(r"(```|~~~|\"\"\").*?(?:\1|\Z)", re.DOTALL)
_TAG = re.compile(r"<(/?)(\w++)[^<>]*+>")
_QUOTED = re.compile(r"^[\"“„«](?:([^\"”“»]{40,}+[\"”“»][.!]?\s*$)|[^\"”“»]*+)", re.MULTILINE)
"""A quotation that fills lines of its own, with a group; without the group, what only begins like one."""
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t]+.*\n?|\s*\n)*(?:\S.*(?:\n|\Z))?", re.MULTILINE
)
_PASTED_LINE = re.compile(
    r"""^(?:\ {4}|\t)(?!\s*(?:[-*•]|\d+[.)]))\s*\S | ^\s*+(?:
    >                                                             # a quotation in an e-mail, or a Python prompt
    | [$#]\ | \.\.\.\                                            # a shell prompt
    | (?:def|class|import|return|function|const|let|var|public|private|elif|else:|try:|except|raise|await|async)\b
        .*(?:[:({;=]|\))\s*$
    | (?:import|from)\s+[\w.]+(?:\s+as\s+\w+|\s+import\b.*)?$ | \#include\b | \#!/
    | (?:def|function|class)\s+\w+\( | for\s+\w+(?:,\s*\w+)*\s+in\s+[^\s(]+(?:\(.*\))?:\s*$ | \{(?=[^:]*:).*\}\s*,?\s*$
    | (?:git|npm|npx|pip3?|yarn|cargo|docker|kubectl|sudo|curl|wget|ssh|tar|chmod|grep|python3?|node|terraform)\s
        (?:[\w./:@-]+\s){0,8}?--?[a-z]
    | git\s(?:add|checkout|clone|commit|diff|fetch|init|log|merge|pull|push|rebase|stash|status)(?:\s+[\w./:-]+)*\s*$
    | https?://\S+\s*$ | \[[\w.:-]+\]\s*$ | (?!.*\b(?:I|my|we|our)\b)(?:.*\w::\w|.*[\w/]\.[a-z]{1,4}:\d|test\ result:)
    | npm\ (?:ERR|WARN)! | goroutine\ \d+\ \[ | --> | \w+(?:\.\w+)+(?:Error|Exception)\b
    | (?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\b.*\b(?:FROM|INTO|SET|TABLE)\b
    | [\w.\[\]"']+\s*[-+*/]?=\s*\S | [\w.]+\([^)]*\)\s*+;?\s*$ | [{}()\[\];]+,?\s*$ | .*[{;]\s*$ | .*(?:=>|==|&&|\|\|)
    | File\ ".*",\ line\ \d+ | at\ [\w.$<>]+\( | Caused\ by:
    | (?:[\w.]*(?:Error|Exception|Warning)|error|fatal|panic)(?:\[\w+\])?:\s
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b
    | </?\w++[^>]*+>
    )""",
    re.VERBOSE,
)


def remove_pasted_text(text: str) -> str:
    r"""Return a turn without code, tracebacks, logs, quoted documents and texts that the user wants worked on.

    >>> remove_pasted_text("I use Python 3.12.\n```\nname = 'Ann'\n```")
    'I use Python 3.12.'
    >>> remove_pasted_text("I live in Oslo. Translate this: I live in Rome.")
    'I live in Oslo.'
    """
    text = text.replace("\r\n", "\n").replace(GAP, "")
    for pattern in (_FENCED, _TRACEBACK):
        text = pattern.sub(GAP, text)
    text = _QUOTED.sub(lambda match: GAP if match[1] else match[0], _remove_tagged(text))
    lines = [GAP if _PASTED_LINE.match(line) else line for line in text.split("\n")]
    own = remove_blocks("\n".join(_remove_output(lines))).split("\n")
    return "\n".join(line.replace(GAP, "") for line in own if line.strip() != GAP)


def _remove_tagged(text: str) -> str:
    """Return a text without what stands between an opening tag and the next closing one of its name."""
    tags = list(_TAG.finditer(text))
    closing: dict[str, list[int]] = {}
    """By name, the ends of the closing tags, the last one first."""
    for tag in reversed(tags):
        if tag[1]:
            closing.setdefault(tag[2], []).append(tag.end())
    kept: list[str] = []
    at = 0
    for tag in tags:
        ends = closing.get(tag[2], [])
        while ends and ends[-1] <= tag.end():
            ends.pop()
        if ends and not tag[1] and tag.start() >= at:
            kept += [text[at : tag.start()], GAP]
            at = ends[-1]
    return "".join([*kept, text[at:]])


def _remove_output(lines: list[str]) -> list[str]:
    """Return lines without those of a block below "…:" in which something pasted stands, but for the user's own."""
    begin, left = 0, list(lines)
    for n in range(len(lines) + 1):
        if n < len(lines) and lines[n].strip():
            continue
        block = lines[begin:n]
        if block and block[0].rstrip().endswith(":") and GAP in block[1:]:
            left[begin + 1 : n] = [each if FIRST_PERSON.search(each) else GAP for each in block[1:]]
        begin = n + 1
    return left
