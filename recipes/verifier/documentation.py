"""Makes questions about documentation: from headings, from sentences that say how to do something, and from FAQs.

Headings become questions as people ask them ("Using a proxy": "How do I use a proxy?"), some words exchanged for
synonyms. Negatives are other sections of the page and the best BM25 hits of other pages. FAQs are read from unpacked
Debian packages (perl-doc, debian-faq, the FAQ of python3-doc).
"""

import gzip
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from meve.training.mining import Miner
from recipes.verifier.examples import Example
from recipes.verifier.pairs import rows_of
from recipes.verifier.splits import part_of

HEADINGS: Mapping[str, int] = {
    "docs_aws": 400,
    "docs_powershell": 400,
    "docs_web_cc": 500,
    "docs_permissive": 400,
    "docs_redis": 250,
    "docs_python_peps": 300,
    "gov_us": 400,
    "openstax_sections": 150,
}
"""The number of headings used per set; as many sentences that say how to do something, where there are."""
LENGTH = range(60, 650)
"""Characters of a passage; a longer section is cut after a line or sentence."""
SYNONYMS = (
    "disable|turn off|switch off|deactivate", "enable|turn on|switch on|activate", "create|make|set up",
    "delete|remove|get rid of|drop", "configure|set up|adjust", "display|show|print|see", "modify|change|edit",
    "retrieve|get|fetch|read", "specify|give|set|state", "error|failure|problem", "directory|folder",
    "install|set up", "execute|run|start", "terminate|stop|end|kill", "verify|check|make sure of",
    "select|choose|pick", "multiple|several|more than one", "use|work with|apply", "update|bring up to date|upgrade",
    "parameter|argument|option", "prevent|keep from|avoid|stop", "convert|turn|change", "connect|link",
    "restrict|limit", "obtain|get", "import|load|bring in", "list|show all|see all", "find|look up|locate",
    "write|put", "add|include|insert", "default|standard|if I set nothing", "maximum|largest|biggest", "begin|start",
    "copy|duplicate", "rename|give a new name to", "combine|join|put together", "filter|narrow down",
    "sort|put in order", "define|declare|set", "allow|let|permit", "debug|find bugs in", "customize|adapt|change",
    "manage|handle|look after", "monitor|watch|keep an eye on",
)  # fmt: skip
REPLACED = 0.4
"""The share of words with synonyms that are exchanged."""
VERBS = frozenset(
    """
    access add adjust allow analyze apply archive assign attach avoid backup build bypass call change check choose
    clean clear clone close combine compare compile configure connect convert copy create customize debug declare
    define delete deploy detect disable display download edit enable encrypt enter evaluate execute exclude export
    extend extract fetch filter find fix format generate get give group handle hide identify implement import
    improve include inspect install invoke iterate join launch limit link list load locate log make manage mark
    merge migrate modify monitor mount move open optimize override package parse pass pause perform prepare prevent
    print protect provide publish query read rebuild record recover redirect reduce refer register remove rename
    replace report request reset resize resolve restart restore restrict resume retrieve return reuse revoke rotate
    run save scale schedule search secure select send set share show shut simplify skip sort specify split start
    stop store submit switch tag terminate test track train transfer trigger troubleshoot turn uninstall unlock
    update upgrade upload use validate verify view visit wait watch work wrap write apply pay ask contact file
    report claim request
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)

_HOW = (
    "How do I {}?", "How can I {}?", "how to {}", "What's the way to {}?", "I want to {}.", "{}",
    "What do I have to do to {}?", "Is there a way to {}?", "Which command or setting is there to {}?", "Can I {}?",
    "how {}", "I need to {}, how?", "What should I use to {}?",
)  # fmt: skip
_WHAT = (
    "What is {}?", "{}", "What does the documentation say about {}?", "Tell me about {}.", "How does {} work?",
    "What should I know about {}?", "explain {}", "Where can I read about {}?", "{} explained", "What about {}?",
)  # fmt: skip
_TO = re.compile(
    r"(?:^|(?<=[.!?] )|\n)(?:To|In order to|If you (?:want|need|like) to) ([a-z]+ [^,.;:()\n]{8,80}), "
    r"(?=(?:you |use|run|set|specify|call|add|choose|type|enter|pass|click|select|open|go |create|write|first|make))"
)
_USE = re.compile(r"\bYou can (?:also )?use ([^.\n]{3,60}?) to ([a-z]+ [^.;:()\n]{8,80})[.]")
_BY = re.compile(r"\bYou can ([a-z]+ [^.;:()\n]{8,70}?) (?:by|with|using|through|via) [^.\n]{4,120}[.]")


@dataclass(frozen=True, slots=True)
class _Section:
    heading: str
    text: str
    group: str


def examples(folder: Path, seed: int, faq: Path | None = None) -> Iterator[Example]:
    """Yield questions about every set of documentation, and the FAQs."""
    for name, count in HEADINGS.items():
        rng = random.Random(f"{seed}/documentation/{name}")
        rows = [r for r in rows_of(folder, name) if part_of(r["source"], str(r["group"])) == "train"]
        sections = [_Section(r["query"], cut(r["positive"]), str(r["group"])) for r in rows]
        sections = [s for s in sections if len(s.text) >= LENGTH.start and _is_prose(s.text)]
        yield from _of_set(name, sections, count, rng)
    if faq:
        sections = list(read_faqs(faq))
        yield from _of_set("faq", sections, len(sections), random.Random(f"{seed}/documentation/faq"))


def _of_set(name: str, sections: Sequence[_Section], count: int, rng: random.Random) -> Iterator[Example]:
    texts = [s.text for s in sections]
    miner = Miner(texts, rng)
    pages: dict[str, list[_Section]] = defaultdict(list)
    for section in sections:
        pages[section.group].append(section)
    frequent = Counter(word for s in sections for word in re.findall(r"[a-z]+", s.text.lower()))
    seen: Counter[str] = Counter()

    def irrelevant(section: _Section, query: str) -> list[str]:
        near = [s for s in pages[section.group] if s.text != section.text and not _is_about(s.heading, section.heading)]
        rows = miner.draw(
            query,
            1,
            lambda i: sections[i].group != section.group and not _is_about(sections[i].heading, section.heading),
        )
        return [*(s.text for s in rng.sample(near, min(1, len(near)))), *(texts[i] for i in rows)]

    for section in rng.sample(sections, len(sections)):
        if sum(seen.values()) >= count or seen[section.heading.lower()] or len(section.heading.split()) > 14:
            continue
        seen[section.heading.lower()] += 1
        query = ask(section.heading, frequent, rng)
        yield _one(query, section.text, True, name)
        yield from (_one(query, text, False, name) for text in irrelevant(section, query))
    done = 0
    for section in rng.sample(sections, len(sections)):
        purposes = [
            (sentence, purpose) for sentence in split_sentences(section.text) if (purpose := purpose_of(sentence))
        ]
        if not purposes or done >= count:
            continue
        done += 1
        sentence, purpose = rng.choice(purposes)
        query = vary(rng.choice(_HOW).format(purpose), rng)
        passage = sentence.strip() if rng.random() < 0.5 else section.text
        yield _one(query, passage, True, name)
        rest = section.text.replace(sentence, " ").strip()
        if len(rest) >= LENGTH.start and passage != section.text:  # the section without its answer
            others = [s.strip() for s in split_sentences(rest) if len(s.split()) > 5]
            yield from (_one(query, text, False, name) for text in rng.sample(others, min(1, len(others))))
        yield from (_one(query, text, False, name) for text in irrelevant(section, query)[-1:])


def purpose_of(sentence: str) -> str | None:
    """Return what a sentence says how to do: `save a file` in "To save a file, press F2."."""
    for pattern, group in ((_TO, 1), (_USE, 2), (_BY, 1)):
        match = pattern.search(sentence)
        if match and match[group].split()[0] in VERBS and len(match[group].split()) >= 3:
            return _as_asked(match[group])
    return None


def _as_asked(purpose: str) -> str:
    return re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "I", re.sub(r"[`*]", "", purpose)))


def ask(heading: str, frequent: Mapping[str, int], rng: random.Random) -> str:
    """Make a question of a heading; a heading that is a question stays."""
    text = re.sub(r"[`*]", "", heading).strip()
    if text.endswith("?"):
        return vary(text, rng) if rng.random() < 0.7 else text.rstrip("?").lower()
    first, _, rest = text.partition(" ")
    verb = base_form(first.lower(), frequent)
    if first.lower() == "how" and rest.lower().startswith("to "):
        return vary(rng.choice(_HOW).format(_as_asked(rest[3:])), rng)
    if verb and rest and rest.split()[0].lower() not in ("for", "of", "and"):
        return vary(rng.choice(_HOW).format(f"{verb} {_as_asked(rest)}"), rng)
    if rng.random() < 0.3:
        return vary(text, rng)
    return vary(rng.choice(_WHAT).format(text), rng)


def base_form(word: str, frequent: Mapping[str, int]) -> str | None:
    """Return the verb of a heading's first word: `use` for `using`; None for other words."""
    if word in VERBS:
        return word
    if not word.endswith("ing") or len(word) < 5:
        return None
    stem = word[:-3]
    forms = [stem, f"{stem}e", *([stem[:-1]] if len(stem) > 2 and stem[-1] == stem[-2] else [])]
    known = [form for form in forms if form in VERBS]
    return max(known or [""], key=lambda form: frequent.get(form, 0)) or None


def vary(text: str, rng: random.Random) -> str:
    """Exchange some words for synonyms; write some questions without capitals and question mark."""
    for group in SYNONYMS:
        words = group.split("|")
        for word in words:
            if re.search(rf"\b{word}\b", text, re.IGNORECASE) and rng.random() < REPLACED:
                text = re.sub(rf"\b{word}\b", rng.choice([w for w in words if w != word]), text, flags=re.IGNORECASE)
                break
    text = text[:1].upper() + text[1:]
    return text.rstrip("?.").lower() if rng.random() < 0.15 else text


def cut(text: str) -> str:
    """Return the beginning of a section, at most as long as `LENGTH`, up to the end of a line or sentence."""
    if len(text) < LENGTH.stop:
        return text
    head = text[: LENGTH.stop]
    return head[: max(head.rfind("\n"), head.rfind(". ") + 1, LENGTH.start)].strip()


def _is_prose(text: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", text)
    return len(words) >= 10 and not re.match(r"\s*(?:Topics|PEP: \d|\+ )", text)


def _is_about(one: str, other: str) -> bool:
    """Return whether two headings may have the same answer."""
    a, b = ({w for w in re.findall(r"\w+", h.lower()) if len(w) > 3} for h in (one, other))
    return bool(a and b) and (a <= b or b <= a)


def read_faqs(folder: Path) -> Iterator[_Section]:
    """Yield questions and answers of the FAQs in unpacked packages."""
    for file in sorted(folder.rglob("perlfaq[1-9].pod")):
        yield from _sections_of(
            re.split(r"^=head2 ", file.read_text("utf-8", "replace"), flags=re.MULTILINE)[1:], file.name
        )
    for file in sorted(folder.rglob("debian-faq.en.txt.gz")):
        text = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        for part in re.split(r"^(?=\d+\.\d+\. )", text, flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n\n")
            chapter = title.partition(".")[0]
            title = " ".join(title.split()[1:])
            if title.endswith("?"):
                yield from _sections_of(
                    [f"{title}\n{re.sub(r'^ +', '', body, flags=re.MULTILINE)}"], f"debian {chapter}"
                )
    for file in sorted(folder.rglob("faq/*.rst.txt")):
        parts = re.findall(
            r"^(.+\?)\n[-=~]{4,}\n(.+?)(?=^.+\n[-=~]{4,}\n|\Z)", file.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        yield from _sections_of([f"{title}\n{body}" for title, body in parts], file.name)


def _sections_of(parts: Sequence[str], group: str) -> Iterator[_Section]:
    for part in parts:
        title, _, body = part.partition("\n")
        body = re.sub(r"^=\w+.*$", "", body, flags=re.MULTILINE)
        body = re.sub(r"[A-Z]<+ ?(?:[^<>|]*\|)?([^<>]*?) ?>+", r"\1", body)
        body = re.sub(r":\w+:`~?([^`<]*?)(?: <[^`]*>)?`", r"\1", body).replace("``", "`")
        title = re.sub(r"[A-Z]<([^<>]*)>|``", r"\1", title).strip()
        text = cut(re.sub(r"\n{3,}", "\n\n", body).strip())
        if len(text) >= LENGTH.start:
            yield _Section(title, text, group)


def _one(query: str, passage: str, relevant: bool, name: str) -> Example:
    return Example(query=query, passage=passage, relevant=relevant, set=name, kind="documentation", part="train")
