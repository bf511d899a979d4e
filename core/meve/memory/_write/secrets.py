"""Finds secrets in texts that are about to be stored, and lets the policy make them private or refuse them."""

import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from meve.errors import ModelError, PolicyError, wrap_errors
from meve.memory._write.personal_data import PersonalDataDetector
from meve.memory._write.record_factory import Classifier
from meve.memory._write.told_secrets import tells_secret
from meve.memory.items.item import named_texts
from meve.memory.policy import Policy, PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, check_choice

_PLUGINS = """
artifactory.ArtifactoryDetector aws.AWSKeyDetector azure_storage_key.AzureStorageKeyDetector
basic_auth.BasicAuthDetector cloudant.CloudantDetector discord.DiscordBotTokenDetector github_token.GitHubTokenDetector
gitlab_token.GitLabTokenDetector ibm_cloud_iam.IbmCloudIamDetector ibm_cos_hmac.IbmCosHmacDetector jwt.JwtTokenDetector
keyword.KeywordDetector mailchimp.MailchimpDetector npm.NpmDetector openai.OpenAIDetector
private_key.PrivateKeyDetector pypi_token.PypiTokenDetector sendgrid.SendGridDetector slack.SlackDetector
softlayer.SoftlayerDetector square_oauth.SquareOAuthDetector stripe.StripeDetector
telegram_token.TelegramBotTokenDetector twilio.TwilioKeyDetector
"""
"""The detectors of detect-secrets for single texts; those of high entropy and of IP addresses find too much in talk."""
_MAY_HOLD_KEY = re.compile(r"\S{16}|://[^\s/]*:|BEGIN|[:=]>?\s*[\"'`]")
"""Text without any of these holds nothing that the detectors of detect-secrets find."""
_CREDENTIAL = re.compile(
    r"""\b(?:pass(?:word|phrase|code)|pwd|pin(?:\s?code)?|(?:api|secret|access|private|auth)[\s_-]?(?:key|token)|token
        |(?:client|app|consumer|webhook|signing|jwt)[\s_-]?secret)
    ["'`]?(?:\s+(?:for|of|to)\s+(?:\S+\s+){1,4}?|\s*)
    (?:is|was|[:=])\s*["'`]?(?=\S{0,200}\d)[^\s"'`]{4,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A credential that is told or assigned, such as `my PIN is 4711`; its value holds a digit."""
_ASSIGNED = re.compile(
    r"""_(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|secret|access|private|auth|encryption|signing)_?key)
    ["'`]?\s*[:=]\s*["'`]?(?=[^\s"'`]{0,200}\d)[^\s"'`]{4,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A variable of a configuration, such as `DB_PASSWORD=hunter2`; its value holds a digit."""
_KEY_PREFIX = re.compile(
    r"\b(?:sk-(?:ant|proj|or-v1)-[\w-]{20,}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}|github_pat_\w{40,}|npm_[A-Za-z0-9]{36}"
    r"|gsk_[A-Za-z0-9]{40,}|GOCSPX-[\w-]{20,}|whsec_[\w+/]{20,}|dop_v1_[0-9a-f]{40,})"
    r"|(?<![\w-])eyJ[\w-]{10,}+\.ey[\w-]{10}"
)
"""Keys of services that detect-secrets lacks, and JSON web tokens, which may be longer than what it reads at once."""
_CARD = re.compile(r"(?<![\d.-])[2-6]\d{3}(?:[ \xa0\u2013-]?\d){9,15}(?![\d-])")
_ACCOUNT = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ \xa0]?[A-Z\d]{4}){2,7}(?:[ \xa0]?[A-Z\d]{1,3})?(?!\w)", re.IGNORECASE)
_ACCOUNT_DIGITS = 12
_IDENTITY = re.compile(
    r"""\b(?:ssn|social\s+security(?:\s+number)?|passport(?:\s+(?:number|no\.?))?|(?:tax|national)\s+id(?:\s+number)?
        |(?:driver'?s?|driving)\s+licen[cs]e(?:\s+(?:number|no\.?))?)
    (?:['\u2019]s)?\s*+(?:(?:is|was|[:=\#])\s*+)?(?:(?=(?:(?:[^\W\d]|-){0,30}+\d){3})[\w-]{7,}
        |\d{2,3}(?:\ \d{2,4}){2,4})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number of an identity document that is told, such as `my passport number is C01X00T47`."""


_WINDOW, _SHARED = 2_000, 300
"""The characters of a line that detect-secrets reads at once, and how many of them it reads again in the next part: its
patterns take quadratic time. Only JSON web tokens may be longer than what is shared, and `_KEY_PREFIX` finds them."""
_LONG_WORD = re.compile(r"(\w{20})\w+(\w{20})")
"""A word of over 40 characters, whose length squared counts in the time that finding names such as `api_key` takes."""


class SecretDetector(Protocol):
    """Finds secrets, such as keys and passwords, in what is about to be stored."""

    def find_secret(self, text: str) -> str:
        """Return what kind of secret the text holds, without the secret; empty for none."""
        ...


class PatternSecretDetector:
    """Finds keys, tokens, passwords and PINs, and the numbers of cards, bank accounts and identity documents.

    Names, addresses, dates of birth, phone numbers and e-mail addresses are ordinary facts, and are not found.

    Keys and tokens are found by detect-secrets (https://github.com/Yelp/detect-secrets, Apache-2.0). It runs no check
    over the network here.
    """

    def find_secret(self, text: str) -> str:
        """Return the kind of the first secret found; empty for none.

        Raises:
            ModelError: detect-secrets failed.

        >>> detector = PatternSecretDetector()
        >>> detector.find_secret("My PIN is 4711."), detector.find_secret("My card is 4111 1111 1111 1111.")
        ('credential', 'card number')
        >>> detector.find_secret("The secret of a good soup is time.")
        ''
        """
        if any(_passes_luhn(re.sub(r"\D", "", match[0])) for match in _CARD.finditer(text)):
            return "card number"
        if any(_is_account(re.sub(r"\s", "", match[0])) for match in _ACCOUNT.finditer(text)):
            return "bank account number"
        if _IDENTITY.search(text):
            return "identity number"
        if any(each.search(text) for each in (_CREDENTIAL, _ASSIGNED, _KEY_PREFIX)) or tells_secret(text):
            return "credential"
        if not _MAY_HOLD_KEY.search(text):
            return ""
        with wrap_errors(ModelError, "looking for secrets with detect-secrets"):
            return next(_find_keys(text), "")


def _find_keys(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for start in range(0, max(1, len(line) - _SHARED), _WINDOW - _SHARED):
            part = line[start : start + _WINDOW]
            if _MAY_HOLD_KEY.search(part):
                short = _LONG_WORD.sub(r"\1\2", part)
                for plugin in _load_plugins():
                    is_slow = plugin.secret_type == "Secret Keyword"
                    if any(plugin.analyze_string(short if is_slow else part)):
                        yield str(plugin.secret_type)


@cache
def _load_plugins() -> tuple[Any, ...]:
    shown = warnings.showwarning
    try:  # imported late: it takes up to a third of a second
        names = (name.split(".") for name in _PLUGINS.split())
        return tuple(getattr(import_module(f"detect_secrets.plugins.{module}"), name)() for module, name in names)
    finally:
        if warnings.showwarning is not shown:
            logging.captureWarnings(False)  # the import of detect-secrets turns it on for the whole process


def _passes_luhn(digits: str) -> bool:
    """Return whether the check digit of a card number is right (ISO/IEC 7812-1, annex B)."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _is_account(iban: str) -> bool:
    """Return whether the check digits of an international bank account number are right (ISO 13616).

    One in small letters must be mostly digits, since other words would pass the check by chance.
    """
    if not iban.isupper() and sum(map(str.isdigit, iban)) < _ACCOUNT_DIGITS:
        return False
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97 == 1


@dataclass(frozen=True, slots=True)
class WriteGate:
    """Decides under which class a text is stored, whatever the way by which it enters."""

    policy: Policy
    detector: SecretDetector
    classifier: Classifier | None
    """The operator's own classifier; None for the built-in one."""
    personal_data: PersonalDataDetector | None = None
    """Finds personal data; None if the policy keeps it."""

    def admit(
        self, text: str, source: RecordSource, policy_class: PolicyClass, *, is_classified: bool = False
    ) -> tuple[PolicyClass, str]:
        """Return the class of a text and why it is private; empty if nothing made it private.

        Args:
            text: all that is stored.
            source: its origin.
            policy_class: its class so far.
            is_classified: whether the operator's own classifier chose that class.

        Raises:
            PolicyError: the text holds a secret or personal data, and the policy refuses that.
            ModelError: a detector failed.
            ValidationError: the classifier returned no class.
        """
        found = self._find(text)
        if self.policy.rule(policy_class).on_request:
            return policy_class, ""
        if found:
            return "private", found
        if self.classifier is not None and not is_classified:
            chosen: PolicyClass = check_choice(self.classifier.classify(text, source), "policy_class", PolicyClass)
            if self.policy.rule(chosen).on_request:
                return chosen, "classifier"
        return policy_class, ""

    def _find(self, text: str) -> str:
        """Return what makes a text private, such as `secret: credential`; empty for nothing. Raise as `admit`."""
        rules = self.policy
        secret = "" if rules.secrets == "keep" else self.detector.find_secret(text)
        if secret and rules.secrets == "refuse":
            raise PolicyError(
                f"the text holds a secret ({secret:.60}), and the policy refuses secrets: remove it, or set secrets to "
                "'private' or 'keep'"
            )
        personal = "" if self.personal_data is None else self.personal_data.find(text)
        if personal and rules.personal_data.action == "refuse":
            raise PolicyError(
                f"the text holds personal data ({personal}), and the policy refuses it: remove it, or set "
                "personal_data.action to 'private' or 'keep'"
            )
        if secret:
            return f"secret: {secret:.60}"
        return f"personal data: {personal}" if personal else ""


def text_of(record: MemoryRecord, tags: Iterable[str]) -> str:
    """Return the text of a record and its tags, as the gate reads them.

    An item's namespace isn't read: it is its address, and often holds the user's id.
    """
    value = record.metadata.get("value")
    if record.kind == "item" and isinstance(value, Mapping):
        return all_text(f"{record.metadata.get('key')}: {record.text}", value, tags)
    return all_text(record.text, record.metadata, tags)


def all_text(text: str, metadata: Mapping[str, Any], tags: Iterable[str] = ()) -> str:
    """Return the text of a record, of its metadata and of its tags, as the gate reads them."""
    return "\n".join([text, *([named_texts(metadata)] if metadata else ()), *map(str, tags)])
