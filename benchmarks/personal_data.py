"""Measure which personal data detectors find in 30 texts, and how often they report some in 30 texts without any.

python -m benchmarks.personal_data

Besides MeVe's patterns, it asks the policy's `personal_data`, and those of `phonenumbers`, `python-stdnum` and
`presidio-analyzer` that are installed. Presidio runs with an empty spaCy model, so it finds no names. Then it asks the
policy's `personal_data` about the texts of `benchmarks.contact_texts`, each with its region.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from benchmarks import contact_texts
from meve.memory import PatternSecretDetector
from meve.memory._write.personal_data import PersonalDataDetector
from meve.memory.policy import PersonalDataRules

TEXTS = """
e-mail Write to me at ann.smith@example.org.
e-mail My mail is j_doe+shop@mail.example.co.uk, not the old one.
e-mail Contact: MARIE@EXAMPLE.FR
e-mail ping bob at bob.b@uni-koeln.example.de when done
e-mail login mail <k.o'neil@example.ie>
phone Call me at +49 30 901820.
phone My number is (212) 555-2368 after six.
phone ring 020 7946 0958 for the plumber
phone mobile: 0171 2345678
phone +33 6 12 34 56 78 is my sister's phone
phone Text me on 07700 900123
phone My phone: 1-800-356-9377
phone dial 00 41 44 668 18 00 for grandma
card My card is 4111 1111 1111 1111.
card the Amex 378282246310005 expires in May
card 5555-5555-5555-4444 is the company card
card charge it to 6011000990139424 please
account My IBAN is DE89 3704 0044 0532 0130 00.
account pay to GB29NWBK60161331926819
account konto fr14 2004 1010 0505 0001 3m02 606
account NL91ABNA0417164300 is the rent account
identity My SSN is 078-05-1120.
identity social security number 219-09-9999
identity My NHS number is 943 476 5919.
identity codice fiscale RCCMNL83S18D969H
identity my CPF is 390.533.447-05
identity Meine Steuer-ID ist 36574261809.
identity DNI 54362315K
identity passport number C01X00T47
identity BSN 111222333
none Order 1234567890123456 arrived.
none The tracking number is 1Z999AA10123456784.
none We run version 2.14.3-rc1 of the server.
none The ISBN is 978-3-16-148410-0.
none ISBN 0-306-40615-2 is the red one
none My flight LH4711 leaves on 2026-05-20 at 07:15.
none invoice 2024-000123-77 is paid
none Ticket #8812345 is closed.
none The meeting is from 10:30 to 12:45.
none He ran 10000 m in 27:12.43
none Pi is 3.14159265358979
none My blood pressure is 120/80 and my pulse 64.
none Room 301-445 on floor 3
none The part number is 555-2368-A
none EAN 4006381333931 is the pen
none The server is 192.168.10.254, port 8080
none commit 4a5b6c7d8e9f0a1b
none the event of 18.07.1983 in Rome
none We sold 1,234,567,890 units
none UPC 036000291452
none My licence plate is B-MX 1234.
none latitude 52.5200066, longitude 13.404954
none the mass is 1989000000000000 kg
none Reference: 2023 1144 5566
none The postcode is 10115 and the house 44
none @ann wrote about it on mastodon
none use a@b in the query
none chapter 12 345 words long 6789
none timestamp 1700000000
none DE12345678901234 is the order number
"""
REGIONS = ("US", "GB", "DE", "FR")
ENTITIES = ["EMAIL_ADDRESS", "PHONE_NUMBER", "IBAN_CODE", "CREDIT_CARD", "US_SSN", "UK_NHS"]
ROUNDS = 5
Find = Callable[[str], object]


def find_detectors() -> Iterator[tuple[str, Find]]:
    """Yield the name of each detector that is installed, and its function."""
    yield "MeVe's patterns", PatternSecretDetector().find_secret
    with suppress(ImportError):
        yield f"personal_data of the policy, {', '.join(REGIONS)}", find_contacts(*REGIONS)
    yield "a pattern for e-mail addresses", re.compile(r"[\w.+'-]+@[\w-]+(?:\.[\w-]+)+").search
    with suppress(ImportError):
        yield f"phonenumbers, {', '.join(REGIONS)}", find_phone()
    with suppress(ImportError):
        yield "python-stdnum, on each run of words", find_standard_number()
    with suppress(ImportError):
        yield "presidio-analyzer, without a model", find_by_presidio()


def find_contacts(*regions: str) -> Find:
    """Return a function that finds what the policy's `personal_data` does."""
    return PersonalDataDetector(PersonalDataRules(regions=regions)).find


def find_phone() -> Find:
    """Return a function that finds a valid phone number of one of the regions."""
    import phonenumbers

    return lambda text: any(phonenumbers.PhoneNumberMatcher(text, each).has_next() for each in REGIONS)


def find_standard_number() -> Find:
    """Return a function that finds a card, an account or an identity number with a right check digit."""
    from stdnum import iban, luhn
    from stdnum.br import cpf
    from stdnum.de import idnr
    from stdnum.es import dni
    from stdnum.gb import nhs
    from stdnum.it import codicefiscale
    from stdnum.nl import bsn
    from stdnum.us import ssn

    def is_number(run: str) -> bool:
        if len(re.findall(r"\d", run)) < 3:
            return False
        digits = re.sub(r"[ .-]", "", run)
        is_card = digits.isdigit() and 13 <= len(digits) <= 19 and luhn.is_valid(digits)
        return is_card or any(kind.is_valid(run) for kind in (iban, ssn, nhs, codicefiscale, cpf, idnr, dni, bsn))

    def find(text: str) -> bool:
        words = re.findall(r"[\w.-]+", text)
        runs = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(len(words), i + 9) + 1))
        return any(map(is_number, runs))

    return find


def find_by_presidio() -> Find:
    """Return a function that finds what Presidio's patterns know."""
    import spacy
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    nlp: Any = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "none"}])
    nlp.nlp = {"en": spacy.blank("en")}
    engine = AnalyzerEngine(nlp_engine=nlp)
    return lambda text: engine.analyze(text, language="en", entities=ENTITIES, score_threshold=0.4)


def main() -> None:
    """Print what each detector finds of each kind, what it takes for personal data, and its time for a text."""
    texts = [tuple(line.split(" ", 1)) for line in TEXTS.strip().splitlines()]
    of_kind = Counter(kind for kind, _ in texts)
    for name, find in find_detectors():
        found = [(kind, text) for kind, text in texts if find(text)]
        start = time.process_time()
        for _, text in texts * ROUNDS:
            find(text)
        micros = (time.process_time() - start) / len(texts) / ROUNDS * 1e6
        counts = Counter(kind for kind, _ in found)
        print(f"{name}, {micros:.0f} µs:", ", ".join(f"{kind} {counts[kind]}/{of_kind[kind]}" for kind in of_kind))
        print("    wrongly:", [text for kind, text in found if kind == "none"])
    with suppress(ImportError):
        print_contacts("tuned on", contact_texts.TUNED_CONTACTS, contact_texts.TUNED_HARMLESS)
        print_contacts("asked once", contact_texts.CONTACTS, contact_texts.HARMLESS)


def print_contacts(name: str, contacts: str, harmless: str) -> None:
    """Print what `personal_data` finds of a part of the contact texts, and what it takes for personal data."""
    told = [line.split(" ", 1) for line in contacts.strip().splitlines()]
    missed = [text for region, text in told if not find_contacts(*(() if region == "*" else (region,)))(text)]
    print(f"{name}: {len(told) - len(missed)} of {len(told)} found, missed: {missed}")
    texts = harmless.strip().splitlines()
    for region in ("", *sorted({region for region, _ in told} - {"*"})):
        find = find_contacts(*filter(None, (region,)))
        wrong = [text for text in texts if find(text)]
        print(f"    wrongly, {region or 'no region'}: {len(wrong)} of {len(texts)} {wrong}")


if __name__ == "__main__":
    main()
