"""Finds e-mail addresses and phone numbers in texts, if the policy asks for it."""

import re
from collections.abc import Iterable

from meve._extras import require
from meve._quoting import fold
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.memory.policy import PersonalDataRules

NEEDS = {"phonenumbers": "personal-data"}
"""The package that finding phone numbers needs, and its extra."""
_EMAIL = re.compile(
    r"(?<![\w.%+@/'-])[\w.%+'-]{1,64}+@(?!\dx\.|[\w.-]{1,255}:\S)"
    r"(?:[\w-]{1,63}+\.){1,8}(?:[^\W\d_]{2,24}+|xn--[a-z\d-]{2,59}+)(?![^\W_])",
    re.IGNORECASE,
)
"""An address with a domain of several parts; not `git@host.org:path`, `//user@host.org` and `icon@2x.png`."""
_DIGITS = re.compile(r"\d(?:\D{0,4}\d){6}")
"""Text without this holds no phone number of seven digits or more."""
_DATE = re.compile(
    r"(?:19|20)\d\d([-./ ]?)(?:0\d|1[0-2])\1(?:[0-2]\d|3[01])|(?:[0-2]?\d|3[01])([-./ ])(?:0?\d|1[0-2])\2(?:19|20)\d\d"
)


_PART = re.compile(r"(?:\d\.|\w-|[/#_])\Z")
"""Stands before digits that are part of an identifier, of an address or of another number: `RE-2026-004711`."""


class PersonalDataDetector:
    """Finds e-mail addresses by a pattern, and phone numbers by `phonenumbers`, a port of Google's libphonenumber.

    Args:
        rules: what to find; their `action` is the caller's.

    Raises:
        MissingExtraError: phone numbers are to be found, and the extra `personal-data` isn't installed.
        ConfigurationError: a region isn't known to `phonenumbers`.
    """

    def __init__(self, rules: PersonalDataRules) -> None:
        self._finds_email, self._finds_phone = "email" in rules.kinds, "phone" in rules.kinds
        self._regions: tuple[str | None, ...] = rules.regions or (None,)
        if self._finds_phone:
            require("finding phone numbers (personal_data of the policy)", NEEDS)
            _check_regions(rules.regions)

    def find(self, text: str) -> str:
        """Return the kind of personal data that is found first, such as `phone number`; empty for none.

        Raises:
            ModelError: phonenumbers failed.
        """
        if self._finds_email and _EMAIL.search(fold(text)):
            return "e-mail address"
        if self._finds_phone and _DIGITS.search(text):
            with wrap_errors(ModelError, "looking for phone numbers with phonenumbers"):
                if any(map(self._has_phone, filter(_DIGITS.search, text.splitlines()))):
                    return "phone number"
        return ""

    def _has_phone(self, line: str) -> bool:
        import phonenumbers

        return any(
            match.raw_string[0] in "+\uff0b"
            or not (_PART.search(line[max(0, match.start - 2) : match.start]) or _is_other_number(match.raw_string))
            for region in self._regions
            for match in phonenumbers.PhoneNumberMatcher(line, region)
        )


def _check_regions(regions: Iterable[str]) -> None:
    import phonenumbers

    if unknown := sorted(set(regions) - set(phonenumbers.SUPPORTED_REGIONS)):
        raise ConfigurationError(
            f"personal_data.regions of the policy names {unknown[0]!r}, which phonenumbers doesn't know: give a "
            "country by its two letters, such as DE, FR, GB or US"
        )


def _is_other_number(digits: str) -> bool:
    """Return whether digits of a national number are written like a date, a decimal, a version or a list of numbers.

    >>> _is_other_number("2026-10-12"), _is_other_number("59.913868"), _is_other_number("312.555.0187")
    (True, True, False)
    """
    groups = re.findall(r"\d+", digits)
    if _DATE.fullmatch(digits) or sum(len(group) == 1 for group in groups) > 1:
        return True
    is_decimal = len(groups) == 2 and groups[0][0] != "0"
    return digits.split(".") == groups and (is_decimal or any(len(group) == 1 for group in groups[1:]))
