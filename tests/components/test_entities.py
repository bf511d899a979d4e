"""Test the entity detectors."""

import pytest

from meve.components.entities import resolve_entities
from meve.components.entities.composite import CompositeEntities
from meve.components.entities.patterns import PatternEntities
from meve.errors import ConfigurationError, MissingExtraError, ModelNotFoundError
from meve.testing.entities_contract import EntityDetectorContract
from meve.types import Entity


def detect(detector, text):
    return [(entity.kind, entity.text) for entity in detector.detect([text])[0]]


def resolve_dates():
    pytest.importorskip("dateparser", reason="dateparser isn't installed: pip install 'meve[dates]'")
    return resolve_entities("dates")


def import_spacy():
    return pytest.importorskip("spacy", reason="spaCy isn't installed: pip install 'meve[spacy]'")


def resolve_spacy_rules():
    import_spacy()
    return resolve_entities("spacy-rules")


DETECTORS = {
    "patterns": PatternEntities,
    "dates": resolve_dates,
    "spacy-rules": resolve_spacy_rules,
    "composite": lambda: resolve_entities(["patterns", PatternEntities(["moon"])]),
}


class TestDetectors(EntityDetectorContract):
    @pytest.fixture(params=DETECTORS)
    def detector(self, request):
        return DETECTORS[request.param]()


class TestPatternsWithConcepts(EntityDetectorContract):
    known = "The METFORMIN again."

    @pytest.fixture
    def detector(self):
        return PatternEntities(["metformin", "(a+)+$"])


class TestSpacyModel(EntityDetectorContract):
    @pytest.fixture
    def detector(self, tmp_path):
        nlp = import_spacy().blank("en")
        nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Jane"}])
        nlp.to_disk(tmp_path / "model")
        return resolve_entities(str(tmp_path / "model"))


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("He came on 2024-02-15.", "date", "2024-02-15"),
        ("He came on 15/02/2024.", "date", "15/02/2024"),
        ("in February 2024 it was", "date", "February 2024"),
        ("see you next Tuesday", "date", "next Tuesday"),
        ("we met two years ago", "date", "two years ago"),
        ("we met yesterday", "date", "yesterday"),
        ("at 9:30 then", "date", "9:30"),
        ("2024年2月15日に", "date", "2024年2月15日"),
        ("it costs $3,000 now", "quantity", "$3,000"),
        ("20 mg a day", "quantity", "20 mg"),
        ("we have three dogs", "quantity", "three dogs"),
        ("I took 20. Then I slept.", "quantity", "20"),
        ("it was 3.", "quantity", "3"),
        ("I live in Oslo now", "name", "Oslo"),
        ("Jane Smith called.", "name", "Jane Smith"),
        ("with Dr. Jane Smith today", "name", "Dr. Jane Smith"),
        ("он живёт в Москве", "name", "Москве"),
        ("I read “The Trial” again", "name", "The Trial"),
        ("I'm allergic to peanuts.", "concept", "peanuts"),
        ("Jane stopped smoking", "concept", "smoking"),
        ("my favourite food is soup", "concept", "food"),
    ],
)
def test_patterns_find_entities(text, kind, named):
    assert (kind, named) in detect(PatternEntities(), text)


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("我每天吃20毫克", "quantity", "20"),
        ("私は3個買った", "quantity", "3"),
        ("１５日に", "quantity", "１５"),
        ("2024년 2월 15일에 이사", "date", "2024년 2월 15일"),
        ("2월 15일에", "date", "2월 15일"),
        ("20개를", "quantity", "20"),
        ("กินยา20มก.ทุกวัน", "quantity", "20"),
        ("กินยา ๒๐ มก.", "quantity", "๒๐"),
        ("فبراير ٢٠٢٤ في", "quantity", "٢٠٢٤"),
        ("الساعة٩", "quantity", "٩"),
        ("फरवरी २०२४ में", "quantity", "२०२४"),
        ("לפני 3ימים", "quantity", "3"),
        ("20мг аспирина", "quantity", "20"),
        ("в феврале 2024 года", "date", "2024"),
        ("🌍20🚀", "quantity", "20"),
        ("15/02/2024에", "date", "15/02/2024"),
        ("住在2024-2-15前", "date", "2024-2-15"),
        ("٢٠٢٤-٠٢-١٥", "date", "٢٠٢٤-٠٢-١٥"),
    ],
)
def test_numbers_are_found_in_every_script(text, kind, named):
    assert detect(PatternEntities(), text) == [(kind, named)]


@pytest.mark.parametrize("text", ["the 2nd", "mp3 v2 3x", "q1-2b", "А4 β2", "第", "년 월"])
def test_digits_inside_a_word_are_no_number(text):
    assert detect(PatternEntities(), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "ok", "Thanks a lot!", "What do you think?", "Really? Wow. Great!", "I don't know. It's fine.", "haha yes",
        "May I ask?", "We may march on.", "He said: Sure.", "so it goes…", "هذا جيد", "よかったです",
    ],
)  # fmt: skip
def test_patterns_find_nothing_in_pleasantries(text):
    assert detect(PatternEntities(), text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("yaşıyorum İstanbul", "İstanbul"), ("şehir İstanbul", "İstanbul"), ("mieszkam w Łodzi", "Łodzi"),
        ("ζω στην Αθήνα", "Αθήνα"), ("живу в Киеве", "Киеве"), ("ապրում եմ Երևան", "Երևան"),
    ],
)  # fmt: skip
def test_names_are_found_in_scripts_with_capitals(text, name):
    assert detect(PatternEntities(), text) == [("name", name)]


@pytest.mark.parametrize("text", ["서울에 살아요", "ผมอยู่กรุงเทพ", "मैं दिल्ली में रहता हूँ", "住在东京", "אני גר בתל אביב"])
def test_names_are_not_found_in_scripts_without_capitals(text):
    assert detect(PatternEntities(), text) == []


def test_version_numbers_are_no_dates():
    assert not [f for f in detect(PatternEntities(), "kernel 2.6.8.1-3-686 and 1.2.3-rc1") if f[0] == "date"]


def test_overlap_keeps_entity_of_earlier_detector():

    class One:
        def __init__(self, *entities):
            self.name, self._entities = "one", entities

        def detect(self, texts):
            return [self._entities for _ in texts]

    first, over, apart = (Entity(kind="a", text=t, start=s) for t, s in (("cde", 2), ("ef", 4), ("a", 0)))
    assert CompositeEntities([One(first), One(over, apart)]).detect(["abcdefg"]) == [(apart, first)]


@pytest.mark.parametrize("wrong", ["", " ", [], 7, PatternEntities, object()])
def test_resolving_a_non_detector_raises(wrong):
    with pytest.raises(ConfigurationError):
        resolve_entities(wrong)


@pytest.mark.parametrize("wrong", ["moon", [""], [7]])
def test_invalid_concepts_raise(wrong):
    with pytest.raises(ConfigurationError, match="concepts"):
        PatternEntities(wrong)


@pytest.mark.parametrize(
    ("concept", "text"),
    [
        ("二甲双胍", "我每天吃二甲双胍吗"), ("메트포르민", "메트포르민을 먹어요"), ("เมตฟอร์มิน", "ฉันกินเมตฟอร์มินทุกวัน"),
        ("متفورمين", "آخذ المتفورمين"), ("metformin", "我吃metformin吗"), ("Метформин", "пью метформин."),
    ],
)  # fmt: skip
def test_concepts_are_found_in_scripts_without_spaces(concept, text):
    assert ("concept", concept.casefold()) in [(k, t.casefold()) for k, t in detect(PatternEntities([concept]), text)]


@pytest.mark.parametrize(("concept", "text"), [("ham", "hamster"), ("ам", "там"), ("ham", "sham2"), ("ham", "ham_1")])
def test_concepts_match_whole_words_in_scripts_with_spaces(concept, text):
    assert detect(PatternEntities([concept]), text) == []


def test_missing_spacy_model_error_names_it():
    with pytest.raises((ModelNotFoundError, MissingExtraError), match=r"no_such_model|meve\[spacy\]"):
        resolve_entities("no_such_model")


def test_misspelt_detector_error_lists_detectors():
    import_spacy()
    with pytest.raises(ModelNotFoundError, match="download patern, or take 'patterns', 'dates' or 'spacy-rules'"):
        resolve_entities("patern")


def test_custom_spacy_rules_are_used():
    import_spacy()
    from meve.components.entities.spacy import SpacyEntities

    mine = SpacyEntities.from_rules([{"label": "DRUG", "pattern": [{"LOWER": "metformin"}]}], language="xx")
    assert detect(mine, "Metformin helps") == [("drug", "Metformin")]
    with pytest.raises(ConfigurationError, match="rules"):
        SpacyEntities.from_rules([{"label": "DRUG", "pattern": [{"NO_SUCH": 1}]}])
    with pytest.raises(ConfigurationError, match="'qq'"):
        SpacyEntities.from_rules(language="qq")


def test_dates_are_found_in_other_languages():
    pytest.importorskip("dateparser", reason="dateparser isn't installed: pip install 'meve[dates]'")
    from meve.components.entities.dates import DateEntities

    assert ("date", "3. März 2021") in [
        (k, t.removeprefix("am ")) for k, t in detect(DateEntities(["de"]), "am 3. März 2021")
    ]
    assert detect(DateEntities(["en"]), "I may go to the march") == []
