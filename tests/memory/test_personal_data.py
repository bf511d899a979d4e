"""E-mail addresses and phone numbers: found at every door if the policy asks for it, and made private or refused."""

import sys

import pytest

from benchmarks import contact_texts
from meve.errors import ConfigurationError, MissingExtraError, PolicyError
from meve.memory import GovernedMemory, Policy
from meve.memory._write.personal_data import PersonalDataDetector
from meve.memory.policy import PersonalDataRules
from tests.memories import open_memory
from tests.memory.test_secrets import DOORS, SECRET

pytest.importorskip("phonenumbers", reason="NOT TESTED: finding phone numbers needs the extra personal-data")
MAIL, PHONE, ABROAD = "My address is ann@example.org.", "My phone is 030 901820.", "My phone is +49 30 901820."
PRIVATE = {"action": "private", "regions": ["DE"]}


def policy(**rules):
    return Policy.from_dict({"personal_data": rules})


def detector(*regions, kinds=("email", "phone")):
    return PersonalDataDetector(PersonalDataRules(kinds=kinds, regions=regions))


def read(part):
    return [line.split(" ", 1) for line in part.strip().splitlines()]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_personal_data_becomes_private_at_every_door(file, door):
    with open_memory(file, policy=policy(**PRIVATE)) as memory:
        for text, is_private in (("I like tea on 12.05.2026.", False), (MAIL, True), (PHONE, True), (SECRET, True)):
            door(memory, text)
            found = {r.policy_class == "private" for r in memory.list(user_id="ann", include_messages=True)}
            assert is_private in found, text
            memory.forget_user(user_id="ann")


@pytest.mark.parametrize("door", [door for name, door in DOORS.items() if name != "turn"])
def test_policy_refuses_personal_data_at_every_door(file, door):
    with open_memory(file, policy=policy(action="refuse", regions=["DE"])) as memory:
        for text in (MAIL, PHONE):
            with pytest.raises(PolicyError, match="holds personal data") as error:
                door(memory, text)
            assert not any(part in str(error.value) for part in ("ann@", "901820"))


def test_personal_data_is_kept_by_default(memory):
    for text in (MAIL, ABROAD):
        assert memory.add(text, user_id="ann").policy_class == "factual"


def test_imported_rows_and_superseding_texts_pass_the_gate(file):
    with open_memory(file, policy=policy(**PRIVATE)) as memory:
        memory.add("The plumber is good.", user_id="ann", id="plumber")
        assert memory.supersede("plumber", PHONE, user_id="ann").policy_class == "private"
        [imported] = memory.import_({"results": [{"id": "1", "memory": MAIL, "user_id": "ann"}]}).added
        assert memory.get(imported, user_id="ann").policy_class == "private"


def test_log_names_the_kind_only(file):
    with open_memory(file, policy=policy(**PRIVATE)) as memory:
        record = memory.add(PHONE, user_id="ann")
        [event] = memory.audit.events(record_id=record.id)
    assert event.detail["made_private"] == "personal data: phone number"


def test_policy_in_a_file_names_kinds_and_regions(tmp_path):
    (tmp_path / "policy.yaml").write_text("personal_data: {action: refuse, kinds: [phone], regions: [FR, GB]}")
    rules = Policy.from_yaml(tmp_path / "policy.yaml").personal_data
    assert (rules.action, rules.kinds, rules.regions) == ("refuse", ("phone",), ("FR", "GB"))
    assert Policy.from_dict({"personal_data": rules.model_dump()}).personal_data == rules


@pytest.mark.parametrize(
    ("rules", "named"),
    [({"regions": ["de"]}, "regions"), ({"kinds": ["fax"]}, "kinds"), ({"on": True}, "known there: action, kinds")],
)
def test_invalid_rule_is_named(rules, named):
    with pytest.raises(PolicyError, match=named):
        policy(**rules)


def test_region_that_does_not_exist_is_named_at_opening(file):
    with pytest.raises(ConfigurationError, match=r"regions .* 'ZZ'"):
        GovernedMemory.open(file, policy=policy(action="private", regions=["ZZ"]))


def test_only_phone_numbers_need_the_extra(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingExtraError, match=r"finding phone numbers .*pip install 'meve\[personal-data\]'"):
        GovernedMemory.open(file, policy=policy(action="private"))
    with open_memory(file, policy=policy(action="private", kinds=["email"])) as memory:
        assert memory.add(MAIL, user_id="ann").policy_class == "private"
        assert memory.add(ABROAD, user_id="ann").policy_class == "factual"


@pytest.mark.parametrize(
    "text",
    [
        "_ann@example.org_",
        "ann@example.org-",
        "ann@example.org_new",
        "ann\uff20example.org",
        "ann\u200b@exam\u00adple.org",
    ],
)
def test_address_is_found_in_other_characters_and_beside_signs(text):
    assert detector(kinds=("email",)).find(f"My address is {text} now.") == "e-mail address"


def test_national_formats_count_in_their_region_only():
    assert [detector(*regions).find(PHONE) for regions in ((), ("FR",), ("FR", "DE"))] == ["", "", "phone number"]
    assert detector().find(ABROAD) == "phone number"


@pytest.mark.parametrize("text", ["Tel.030 901820", "Tel:030/901820", "(030) 901820", "a\nb 030-901820\nc"])
def test_phone_number_is_found_beside_signs(text):
    assert detector("DE").find(text)


def test_contacts_of_many_countries_are_found():
    """Two numbers of the first part are from ranges for fiction, which no phone has."""
    for part, missed in ((contact_texts.TUNED_CONTACTS, 2), (contact_texts.CONTACTS, 0)):
        texts = [text for region, text in read(part) if not detector(*([] if region == "*" else [region])).find(text)]
        assert len(texts) == missed, texts


def test_hardly_any_other_number_is_taken_for_a_phone_number():
    harmless = f"{contact_texts.TUNED_HARMLESS}{contact_texts.HARMLESS}".strip().splitlines()
    assert [text for text in harmless if detector().find(text)] == []
    for region in ("DE", "FR", "GB", "US", "DK"):
        assert sum(bool(detector(region).find(text)) for text in harmless) <= 0.02 * len(harmless) + 1


def test_user_id_in_a_namespace_is_no_personal_data_of_the_item(file, tmp_path):
    """`items.put` doesn't take it for such; so an import, or new tags, must not make the item private either."""
    with open_memory(file, policy=policy(**PRIVATE)) as memory:
        memory.items.put(("users", "ann@example.org"), "tea", {"kind": "green"}, user_id="ann@example.org")
        exported = memory.export(user_id="ann@example.org")
        (item,) = memory.list(user_id="ann@example.org")
        assert item.policy_class == "canonical"
        assert memory.update(item.id, user_id="ann@example.org", tags=["drinks"]).policy_class == "canonical"
    with open_memory(tmp_path / "other.db", policy=policy(**PRIVATE)) as other:
        assert other.import_(exported).added == [item.id]
        assert other.get(item.id, user_id="ann@example.org").policy_class == "canonical"
