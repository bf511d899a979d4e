"""Mails: their text, headers, quoted replies and parts."""

import random
from contextlib import suppress
from email.message import EmailMessage

import pytest

from meve.errors import IngestError
from meve.ingest import Chunker, Chunking, ingest, split_file
from meve.ingest._converter import Converter, convert
from meve.ingest._mail import read_mail
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

QUOTATION = """\
From: =?utf-8?q?Ois=C3=ADn_Dunne?= <oisin@brightpane.example>
To: Rashida <rashida@fernhill.example>
Cc: garden@fernhill.example
Date: Wed, 11 Mar 2026 23:30:00 -0200
Subject: =?utf-8?q?Quotation_Q-2291_=E2=80=93_windows?=
Message-ID: <a1@brightpane.example>
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Each further week of scaffolding costs =C2=A3640.00, plus the hire of a hoi=
st.
"""


def make_mail(text: str = "The key is lost.", subtype: str = "plain", **headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in headers.items():
        message[name] = value
    message.set_content(text, subtype=subtype)
    return message


def read(message: EmailMessage) -> str:
    return read_mail(message.as_bytes()).text.strip()


def test_mail_is_decoded_and_titled_by_its_subject():
    (passage,) = split_file(QUOTATION, "a.eml", Chunker(Chunking(), WordCounter().count)).passages
    assert passage.text == (
        "From: Oisín Dunne, Wed, 11 Mar 2026\n\n"
        "Each further week of scaffolding costs £640.00, plus the hire of a hoist."
    )
    assert passage.title == "Quotation Q-2291 – windows"
    assert {name: passage.metadata[name] for name in ("kind", "subject", "from", "to", "date", "message_id")} == {
        "kind": "mail",
        "subject": "Quotation Q-2291 – windows",
        "from": "oisin@brightpane.example",
        "to": ["rashida@fernhill.example", "garden@fernhill.example"],
        "date": "2026-03-12T01:30:00+00:00",
        "message_id": "a1@brightpane.example",
    }


def test_html_is_read_where_there_is_no_plain_text():
    page = "<h2>Key</h2><p>The key is <b>lost</b>.</p>"
    assert read(make_mail(page, "html")) == "## Key\n\nThe key is **lost**."
    both = make_mail("Plain words.")
    both.add_alternative(page, subtype="html")
    assert read(both) == "Plain words."
    blank = make_mail(" \n")
    blank.add_alternative(page, subtype="html")
    assert read(blank) == "## Key\n\nThe key is **lost**."


def test_all_texts_of_a_mail_are_read():
    message = make_mail("Before the picture.")
    message.add_attachment(b"x", maintype="image", subtype="png", disposition="inline")
    message.attach(make_mail("After the picture."))
    assert read(message) == "Before the picture.\n\nAfter the picture."


def test_attachments_are_named_in_the_report(tmp_path):
    message = make_mail(Subject="Offer")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Größe.pdf")
    message.add_attachment(make_mail("The mail before."))
    message.add_attachment(b"x", maintype="image", subtype="png", disposition="inline", filename="logo.png")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", disposition="inline", filename="shown.pdf")
    message.add_attachment("a;b", subtype="csv", disposition="inline", filename="shown.csv")
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    retriever = Retriever.empty(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    report = ingest(tmp_path, retriever)
    names = "Größe.pdf, message/rfc822, shown.pdf, shown.csv"
    assert report.warnings == (f"a.eml: attachments aren't read: {names}",)
    assert [passage.text for passage in retriever.passages()] == ["The key is lost."]


@pytest.mark.parametrize(("words", "extra", "is_html"), [(5, 11, True), (5, 10, False), (50, 200, False)])
def test_html_is_read_if_the_plain_text_only_stands_for_it(words, extra, is_html):
    message = make_mail("plain " * words)
    message.add_alternative(f"<p>{'page ' * (words + extra)}</p>", subtype="html")
    assert read(message).startswith("page" if is_html else "plain")


def test_html_that_can_not_be_read_leaves_the_plain_text():
    message = make_mail("The key is lost.")
    message.add_alternative("<b>" * 20_000 + "word " * 20, subtype="html")
    assert read(message) == "The key is lost."


WROTE = "On Tue, 3 Mar 2026, Bo Li <bo@x.example> wrote:"
QUOTE = "> Shall we meet?\n>\n> At noon?"
REPLY = {"In-Reply-To": "<a1@x.example>"}


@pytest.mark.parametrize("headers", [{}, REPLY, {"References": "<a1@x.example>"}])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Yes.\n\n{WROTE}\n{QUOTE}", "Yes."),
        (f"Yes.\n\n{WROTE}\n{QUOTE}\n\n> Or later?", "Yes."),
        (f"Yes.\n\n{WROTE}\n>> No.\n>>> Why?\n> Because.", "Yes."),
        (f"On the whole yes\n{WROTE}\n{QUOTE}", "On the whole yes"),
        (f"Yes.\n\nOn Tue, 3 Mar 2026, Ann <ann@post.example>\nwrote:\n\n{QUOTE}", "Yes."),
        (f"Am 3.3.2026 um 8:00 schrieb Ann <ann@post.example>:\n{QUOTE}\n\nYes.", "Yes."),
        (f"Yes.\n\n-- \nBea\nTel. 12\n\n{WROTE}\n{QUOTE}", "Yes."),
        (f"Yes.\n\n{WROTE}\n{QUOTE}\n\n-- \nBea", "Yes."),
        ("Yes.\n-- \nBea", "Yes."),
        (f"{QUOTE}\n\n-- \nBea", QUOTE),
        ("Table\n\n-- \nColumn A\n-- \nColumn B", "Table\n\n-- \nColumn A"),
    ],
)
def test_copies_and_signature_are_left_out(text, kept, headers):
    assert read(make_mail(text, **headers)) == kept


@pytest.mark.parametrize(
    "lead",
    [
        "On 3 March 2026, Ann wrote:",
        "On Mar 3, 2026, at 10:15, Ann wrote:",
        "At 10:15, Ann wrote:",
        "Ann <ann@post.example> wrote:",
        "Am 03.03.26 schrieb Ann:",
        "Le 3 mars 2026 à 10:15, Ann a écrit :",
        "El 3 de marzo de 2026, Ann escribió:",
        "Op 2026-03-03 schreef Ann:",
    ],
)
def test_line_with_a_date_a_time_or_an_address_introduces_a_quote_of_a_reply(lead):
    text = f"Yes.\n\n{lead}\n{QUOTE}"
    assert read(make_mail(text, **REPLY)) == "Yes."
    assert read(make_mail(text)) == text


@pytest.mark.parametrize("headers", [{}, REPLY])
@pytest.mark.parametrize(
    "text",
    [
        QUOTE,
        f"{WROTE}\n{QUOTE}",
        f"{WROTE}\n{QUOTE}\n\nYes.\n\n> And Bea?\n\nShe too.",
        f"The lease says:\n{QUOTE}\n\nSo we must.",
        f"Hello,\n\n{QUOTE}\n\nYes.",
        f"Yes.\n\n{QUOTE}",
        f"FYI\n\nBegin forwarded message:\n\n{WROTE}\n{QUOTE}",
        f"FYI\n-- \nBea\n\n---------- Forwarded message ---------\nFrom: Cy\n\n{WROTE}\n{QUOTE}",
        "FYI\n\nBegin forwarded message:\n\n> From: Cy\n> The new key code is 4711.",
        "The contract says:\n\n> Notice is three months.",
        "Run this:\n\n>>> import x\n>>> x.run()",
        f"Run this:\n\n{WROTE}\n>>> import x",
        "Results:\n> 5 mm is too thick",
        "As the lawyer wrote:\n\n> No refunds.\n\nThat is all.",
        "On 3 March 2026 we met, and wrote down:\n\n> No refunds.",
        "Yes.\n--\nBea",
        "Prices\n-- \n" + "A line of text.\n" * 10 + "The last line.",
        "Yes.\n-- \nBea\n\n-----Original Message-----\nFrom: Ann\n\nShall we meet?",
    ],
)
def test_what_may_be_the_only_copy_stays(text, headers):
    assert read(make_mail(text, **headers)) == text


def test_escape_of_mailboxes_is_no_quote():
    text = "please note:\n\n>From Monday on the office is closed."
    assert read(make_mail(text, **REPLY)) == "please note:\n\nFrom Monday on the office is closed."
    last = f"Yes.\n\n{WROTE}\n\n>From Monday on."
    assert read(make_mail(last)).endswith("\n\nFrom Monday on.")


LEAD = "<div>On Tue, 3 Mar 2026, Bo Li &lt;<a href='mailto:bo@x.example'>bo@x.example</a>&gt; wrote:<br></div>"
CITED = "<blockquote type='cite'>Shall we meet?</blockquote>"
GMAIL = "<blockquote class='gmail_quote'>Shall we <blockquote type='cite'>Or not?</blockquote> meet?</blockquote>"


@pytest.mark.parametrize(
    ("page", "headers", "kept"),
    [
        (f"<p>Yes.</p><div class='gmail_quote'>{LEAD}{GMAIL}</div>", {}, "Yes."),
        (f"<p>Yes.</p>{LEAD}{CITED}", {}, "Yes."),
        (f"{LEAD}{CITED}<p>Yes.</p>", {}, "Yes."),
        (f"<p>Yes.</p>{CITED}", REPLY, "Yes."),
        (f"<p>Yes.</p>{CITED}<p>-- <br>Bea</p>", {}, "Yes.\n\n> Shall we meet?"),
    ],
)
def test_quotes_that_mail_programs_mark_are_left_out(page, headers, kept):
    assert read(make_mail(page, "html", **headers)) == kept


@pytest.mark.parametrize(
    ("page", "headers"),
    [
        ("<p>The rule is:</p><blockquote>Shall we meet?</blockquote>", {}),
        ("<p>The rule is:</p><blockquote>Shall we meet?</blockquote>", REPLY),
        (f"{LEAD}<blockquote>Shall we meet?</blockquote>", REPLY),
        (f"<p>Yes.</p>{CITED}", {}),
        (f"<p>Hi.</p><p>The 3 Mar 2026 of bo@x.example.</p>As she wrote:{CITED}", {}),
        (CITED, REPLY),
        (f"{CITED}<p>Yes.</p><blockquote type='cite'>And Bea?</blockquote><p>She too.</p>", REPLY),
        (f"<p>FYI</p><blockquote type='cite'><div>Begin forwarded message:</div>{LEAD}{CITED}</blockquote>", REPLY),
        (f"<p>FYI</p><div>---------- Forwarded message ---------</div>{LEAD}{CITED}", REPLY),
    ],
)
def test_other_quotes_of_pages_stay(page, headers):
    assert "Shall we meet?" in read(make_mail(page, "html", **headers))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "^a mail without text"),
        (b"Subject: x\nContent-Type: image/png\n\nabc", "^a mail without text"),
        (b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9", "^a mail whose text isn't utf-8, as it says"),
        (b"Content-Type: text/plain; charset=zlib\n\nabc", "^a mail whose text isn't zlib, as it says"),
        (b"Subject: x\n\na\0b", "^a mail whose text holds a NUL character"),
    ],
)
def test_mails_that_can_not_be_read_are_refused(data, reason):
    with pytest.raises(IngestError, match=reason):
        read_mail(data)


def test_odd_headers_are_read_as_far_as_they_go():
    headers = b"Subject: caf\xc3\xa9 =?no-such?q?a?=\nFrom: \xff\nDate: soon\nTo: " + b"a@b.example, " * 1_000
    mail = read_mail(headers + b"\n\nThe key is lost.")
    assert (mail.title, mail.text) == ("café a", "From: �\n\nThe key is lost.")
    assert mail.metadata == {"subject": "café a", "from": "�"}, "the addresses are too many, the date is none"
    assert read_mail(b"The key is lost.\n").text == "The key is lost."


@pytest.mark.parametrize(
    "header",
    [
        b"Date: Fri, 31 Dec 9999 23:59:59 -1200",
        b"From: " + b"(" * 3_000,
        b"To: " + b"(" * 3_000,
        b"Content-Type: text/plain; a=" + b"(" * 3_000,
    ],
)
def test_header_that_can_not_be_read_leaves_the_mail(header):
    mail = read_mail(b"Subject: Keys\n" + header + b"\n\nThe key is lost.")
    assert (mail.text, mail.metadata) == ("The key is lost.", {"subject": "Keys"})


def test_any_bytes_are_a_mail_or_an_error():
    generator = random.Random(7)
    whole = QUOTATION.encode() * 2
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(generator.randrange(1, 40)):
            data[generator.randrange(len(data))] = generator.choice(b'\n:;=?<>"(,\\ \xff\0@')
        with suppress(IngestError):
            assert read_mail(bytes(data)).text


def test_converter_process_returns_the_same():
    with Converter(60) as converter:
        assert converter.convert(QUOTATION.encode(), "mail") == convert(QUOTATION.encode(), "mail")
