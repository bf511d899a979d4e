"""Mails: their text, headers, quoted replies and parts."""

import random
from contextlib import suppress
from email.message import EmailMessage

import pytest

from meve.errors import IngestError
from meve.ingest import Chunker, Chunking, ingest, split_file
from meve.ingest._converter import Converter, convert
from meve.ingest._mail import leave_out_copies, read_mail
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
    assert read(message) == "Before the picture.\n\n\nAfter the picture."


def test_attachments_are_named_in_the_report(tmp_path):
    message = make_mail(Subject="Offer")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Größe.pdf")
    message.add_attachment(make_mail("The mail before."))
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    retriever = Retriever.empty(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    report = ingest(tmp_path, retriever)
    assert report.warnings == ("a.eml: attachments aren't read: Größe.pdf, message/rfc822",)
    assert [passage.text for passage in retriever.passages()] == ["The key is lost."]


QUOTE = "> Shall we meet?\n>\n> At noon?"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Yes.\n\n{QUOTE}", "Yes."),
        (f"Yes.\n\nOn 3 March, Ann wrote:\n{QUOTE}\n\n> Or later?", "Yes."),
        (f"Yes.\n\nOn Tue, 3 Mar 2026, Ann <ann@post.example>\nwrote:\n\n{QUOTE}", "Yes."),
        (f"Am 3.3.2026 um 8:00 schrieb Ann:\n{QUOTE}\n\nYes.", "Yes."),
        (f"Yes.\n\n-- \nBea\nTel. 12\n\nOn 3 March, Ann wrote:\n{QUOTE}", "Yes."),
        (f"Yes.\n\nOn 3 March, Ann wrote:\n{QUOTE}\n\n-- \nBea", "Yes."),
        ("Yes.\n-- \nBea", "Yes."),
    ],
)
def test_copies_and_signature_are_left_out(text, kept):
    assert leave_out_copies(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        QUOTE,
        f"On 3 March, Ann wrote:\n{QUOTE}",
        f"{QUOTE}\n\n-- \nBea",
        f"On 3 March, Ann wrote:\n{QUOTE}\n\nYes.\n\n> And Bea?\n\nShe too.",
        f"The lease says:\n{QUOTE}\n\nSo we must.",
        f"Hello,\n\n{QUOTE}\n\nYes.",
        "Yes.\n--\nBea",
        "Prices\n-- \n" + "A line of text.\n" * 10 + "The last line.",
        "Yes.\n\n-----Original Message-----\nFrom: Ann\n\nShall we meet?",
    ],
)
def test_what_may_be_the_only_copy_stays(text):
    assert leave_out_copies(text) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "^a mail without text"),
        (b"Subject: x\nContent-Type: image/png\n\nabc", "^a mail without text"),
        (b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9", "^a mail whose text isn't utf-8, as it says"),
        (b"Content-Type: text/plain; charset=zlib\n\nabc", "^a mail whose text isn't zlib, as it says"),
        (b"Subject: x\n\na\0b", "^a mail whose text holds a NUL character"),
        (b"From: " + b"(" * 3_000 + b"\n\nabc", "^a broken mail: RecursionError"),
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
