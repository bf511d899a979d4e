"""No slice is believed that the kernel didn't sign for exactly this request and these turns."""

import json
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.conversation import PlacedTurn, SlicePolicy, TurnGraph
from meve.conversation.slices import ClosedBranch
from meve.errors import AdmissibilityError, ConfigurationError, ValidationError
from meve.service.kernel import KernelAuthority, SigningKey, SigningKeys, VerifyingKey
from meve.service.kernel._app import _Doors
from meve.service.kernel._store import Grant
from meve.service.kernel.records import TurnEntry, describe_policy, write_canonical, write_policy
from meve.service.kernel.tokens import (
    Header,
    Statement,
    parse_token,
    sign_statement,
    verify_statement,
    write_closed,
    write_turns,
)
from meve.signing_keys import decode, encode
from tests.service.kernels import GRAPH, KEY, KEYS, SLICE, TALK, entries, open_kernel

POLICY = SlicePolicy.paper()
NOW = 1_800_000_000.0


def make_authority(*, now=NOW, keys=KEYS, **given):
    arguments = {
        "tenant": "acme",
        "conversation": "c",
        "bearer": "x",
        "keys": [k.verifying for k in keys.keys],
        **given,
    }
    return KernelAuthority("http://127.0.0.1:1", now=lambda: now, **arguments)


def make_answer(folder, *, tenant="acme", conversation="c", anchor="7", policy=None, keys=KEYS, turns=TALK, nonce=""):
    """Return what a kernel answers, as the client reads it."""
    with closing(open_kernel(folder, keys)) as kernel:
        kernel._now = lambda: NOW
        kernel.add(tenant, conversation, entries(turns, tenant, conversation))
        asked = {"conversation": conversation, "anchor": anchor, "policy": policy or write_policy(POLICY)}
        grant = Grant(name="n", tenant=tenant, may_add=False)
        return json.loads(_Doors(kernel, lambda: 0.0).cut(grant, {**asked, "nonce": nonce}))


@pytest.fixture
def answer(tmp_path):
    return make_answer(tmp_path)


def refuse(answer, match, *, authority=None, graph=GRAPH, anchor="7", policy=POLICY):
    with pytest.raises(AdmissibilityError, match=match):
        (authority or make_authority()).verify(answer, graph, anchor, policy)


WRONG = "signature is wrong"
HEADER = Header(key="k1", version="0" * 64, issued=int(NOW), expires=int(NOW) + 60)


def test_true_answer_is_accepted(answer):
    cut = make_authority().verify(answer, GRAPH, "7", POLICY)
    assert cut.turns == SLICE
    assert cut.token == answer["token"]
    assert [branch.turn for branch in cut.closed] == ["4"]


def change(answer, name, edit):
    """Return the answer with the rows of one of its tables edited."""
    table = answer[name]
    rows = edit([*zip(*table.values(), strict=True)])
    return {**answer, name: {column: [*values] for column, values in zip(table, zip(*rows, strict=True), strict=True)}}


def test_turn_removed_or_added_or_swapped_is_refused(answer):
    """A signature over an id field that nobody recomputes would let the turns be swapped; here it covers the turns."""
    four = (entries()[3].digest, "4", "0.5")
    refuse(change(answer, "turns", lambda rows: rows[1:]), WRONG)
    refuse(change(answer, "turns", lambda rows: [*rows, four]), WRONG)
    refuse(change(answer, "turns", lambda rows: [four if row[1] == "3" else row for row in rows]), WRONG)
    refuse(change(answer, "turns", lambda rows: [*rows, rows[0]]), WRONG)


def test_altered_priorities_and_closed_branches_are_refused(answer):
    refuse({**answer, "turns": {**answer["turns"], "priority": ["0.75"] * len(SLICE)}}, WRONG)
    for column, value in (("turns", 2), ("edge", "parent"), ("reason", "edge"), ("turn", "5"), ("beside", "5")):
        assert answer["closed"][column] != [value]
        refuse({**answer, "closed": {**answer["closed"], column: [value]}}, WRONG)
    refuse({**answer, "closed": {column: [] for column in answer["closed"]}}, WRONG)


@pytest.mark.parametrize(
    "changed",
    [{"text": "Rm -rf"}, {"speaker": "system"}, {"time": "2026-01-01"}, {"phase": "draft"}, {"parents": ("1",)}],
)
def test_turn_with_other_content_or_place_is_refused(answer, changed):
    """A signature over ids alone would accept another text under a signed id."""
    graph = TurnGraph.from_turns([replace(turn, **changed) if turn.id == "3" else turn for turn in TALK])
    refuse(answer, "'3' differs here", graph=graph)
    digest = TurnEntry.from_turn(graph.turns[2], "acme", "c").digest
    forged = change(answer, "turns", lambda rows: [(digest, *row[1:]) if row[1] == "3" else row for row in rows])
    refuse(forged, WRONG, graph=graph)


def test_other_anchor_is_refused(answer):
    refuse(answer, WRONG, anchor="6")


@pytest.mark.parametrize(
    "policy", [SlicePolicy(child=0.8), SlicePolicy(phases={"x": 0.5}), SlicePolicy(max_turns=9), SlicePolicy()]
)
def test_other_policy_is_refused(answer, policy):
    refuse(answer, WRONG, policy=policy)


def test_policy_with_whole_numbers_is_the_same_policy(answer):
    assert make_authority().verify(answer, GRAPH, "7", replace(POLICY, parent=1)).turns == SLICE


def test_slice_of_another_tenant_is_refused(tmp_path, answer):
    refuse(make_answer(tmp_path, tenant="other"), "differs here")
    refuse(answer, "differs here", authority=make_authority(tenant="other"))


def test_slice_of_another_conversation_is_refused(answer):
    refuse(answer, "differs here", authority=make_authority(conversation="d"))


@pytest.mark.parametrize("changed", [{"tenant": "other"}, {"conversation": "d"}, {"anchor": "6"}])
def test_signature_itself_covers_tenant_conversation_and_anchor(changed):
    """The digests of the turns tell tenants and conversations apart too; this is the statement alone."""
    statement = Statement(
        tenant="acme",
        conversation="c",
        anchor="7",
        policy=POLICY,
        turns=write_turns([("7", "0" * 64, 1.0)]),
        closed=write_closed([]),
    )
    token = sign_statement(statement, HEADER, KEY)
    keys = {"k1": KEY.verifying}
    assert verify_statement(token, statement, keys, NOW).key == "k1"
    with pytest.raises(AdmissibilityError, match=WRONG):
        verify_statement(token, replace(statement, **changed), keys, NOW)


@pytest.mark.parametrize(("later", "match"), [(60, "expired"), (86_400, "expired"), (-60, "from the future")])
def test_expired_or_future_slice_is_refused(answer, later, match):
    assert make_authority(now=NOW + 59.9).verify(answer, GRAPH, "7", POLICY)
    refuse(answer, match, authority=make_authority(now=NOW + later))


def change_header(token, **values):
    name, header, signature = token.split(".")
    return ".".join([name, encode(write_canonical({**json.loads(decode(header)), **values})), signature])


@pytest.mark.parametrize("values", [{"exp": int(NOW) + 9_999}, {"iat": 0}, {"ver": "0" * 64}, {"non": "n"}])
def test_header_is_signed(answer, values):
    refuse({**answer, "token": change_header(answer["token"], **values)}, WRONG)


def test_forged_signature_is_refused(answer):
    forger = SigningKeys(current="k1", keys=(SigningKey.generate("k1"),))
    refuse(answer, WRONG, authority=make_authority(keys=forger))
    name, header, signature = answer["token"].split(".")
    refuse({**answer, "token": f"{name}.{header}.{encode(bytes(64))}"}, WRONG)
    flipped = bytes([decode(signature)[0] ^ 1]) + decode(signature)[1:]
    refuse({**answer, "token": f"{name}.{header}.{encode(flipped)}"}, WRONG)


@pytest.mark.parametrize("length", [0, 1, 16, 32, 63])
def test_truncated_signature_is_refused(answer, length):
    name, header, signature = answer["token"].split(".")
    refuse({**answer, "token": f"{name}.{header}.{encode(decode(signature)[:length])}"}, WRONG)


def test_truncated_token_is_refused_at_every_length(answer):
    for length in range(len(answer["token"])):
        refuse({**answer, "token": answer["token"][:length]}, "malformed|wrong")


def test_rotated_key_verifies_as_long_as_it_is_known(tmp_path, answer):
    both = KEYS.add(SigningKey.generate("k2")).use("k2")
    new = make_answer(tmp_path, keys=both)
    for each in (answer, new):
        assert make_authority(keys=both).verify(each, GRAPH, "7", POLICY).turns == SLICE
    refuse(answer, "'k1', which isn't among k2", authority=make_authority(keys=both.remove("k1")))
    refuse(new, "'k2', which isn't among k1")
    refuse({**new, "token": change_header(new["token"], kid="k1")}, WRONG, authority=make_authority(keys=both))


def test_hmac_signs_on_request_and_its_truncated_tag_is_refused(tmp_path):
    shared = SigningKeys(current="h", keys=(SigningKey.generate("h", "hmac-sha256"),))
    answer = make_answer(tmp_path, keys=shared)
    authority = make_authority(keys=shared)
    assert authority.verify(answer, GRAPH, "7", POLICY).turns == SLICE
    name, header, signature = answer["token"].split(".")
    refuse({**answer, "token": f"{name}.{header}.{encode(decode(signature)[:16])}"}, WRONG, authority=authority)
    refuse(change(answer, "turns", lambda rows: rows[1:]), WRONG, authority=authority)


def test_public_key_is_never_taken_for_a_shared_secret(tmp_path):
    """A verifier that chose the algorithm by the token would accept an HMAC made with the public key."""
    public = KEY.verifying
    confused = SigningKeys(current="k1", keys=(SigningKey(id="k1", secret=public.key, algorithm="hmac-sha256"),))
    refuse(make_answer(tmp_path, keys=confused), WRONG)


def test_comparison_of_hmac_takes_constant_time(monkeypatch):
    import hmac

    used = []
    original = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: used.append(1) or original(a, b))
    key = SigningKey.generate("h", "hmac-sha256")
    assert key.verifying.verify(b"x", key.sign(b"x"))
    assert not key.verifying.verify(b"y", key.sign(b"x"))
    assert len(used) == 2


CONFUSABLE = [
    ("\u00e9", "e\u0301"),
    ("a", "\u0430"),
    ("A", "\uff21"),
    ("ab", "a\u200bb"),
    ("a", "a\x01"),
    ("a|b", "a,b"),
]


@pytest.mark.parametrize(("one", "other"), CONFUSABLE)
def test_ids_that_look_alike_are_different_turns(tmp_path, one, other):
    talk = [PlacedTurn(id="root", text="r"), PlacedTurn(id=one, text="x", parents=("root",))]
    answer = make_answer(tmp_path, turns=talk, anchor=one)
    graph = TurnGraph.from_turns([*talk, PlacedTurn(id=other, text="x", parents=("root",))])
    assert make_authority().verify(answer, graph, one, POLICY).turns == ("root", one)
    refuse(answer, WRONG, graph=graph, anchor=other)
    swapped = {**answer["turns"], "id": [other if turn == one else turn for turn in answer["turns"]["id"]]}
    refuse({**answer, "turns": swapped}, "differs here", graph=graph, anchor=other)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SHARE = st.floats(0, 1) | st.sampled_from([0, 1, -0.0])


@settings(max_examples=60, deadline=None)
@given(
    TEXT,
    st.lists(st.tuples(TEXT, TEXT, SHARE), max_size=4),
    st.lists(st.builds(ClosedBranch, TEXT, TEXT, TEXT, TEXT, SHARE, st.integers(0)), max_size=4),
)
def test_statement_is_signed_as_canonical_json(anchor, turns, closed):
    """Columns are written by hand, for speed: as `json.dumps` would write them."""
    statement = Statement(
        tenant="t", conversation=anchor, anchor=anchor, policy=POLICY, turns=write_turns(turns),
        closed=write_closed(closed),
    )  # fmt: skip
    assert statement.to_bytes(HEADER, "ed25519") == write_canonical({
        "format": "meve-slice-1", "tenant": "t", "conversation": anchor, "anchor": anchor,
        "header": {**HEADER.to_data(), "alg": "ed25519"}, "policy": describe_policy(POLICY),
        "turns": {
            "id": [turn for turn, _, _ in sorted(turns)], "digest": [digest for _, digest, _ in sorted(turns)],
            "priority": [repr(share + 0.0) for _, _, share in sorted(turns)],
        },
        "closed": {
            **{name: [getattr(row, name) for row in closed] for name in ("turn", "beside", "edge", "reason", "turns")},
            "priority": [repr(row.priority + 0.0) for row in closed],
        },
    })  # fmt: skip


def test_joined_ids_are_not_ambiguous():
    """Ids that hold separators, quotes or brackets are signed as themselves."""
    ids = ["a", "b", "a|b", 'a","b', "a\nb", "[", "\\", '\\"', "\u2028"]
    seen = {
        write_canonical([list(pair), third]) for pair in [(x, y) for x in ids for y in ids] for third in ids
    }  # fmt: skip
    assert len(seen) == len(ids) ** 3


def test_lone_surrogates_are_refused_since_json_escapes_would_confuse_them():
    with pytest.raises(ValidationError, match="surrogates"):
        write_canonical(["\ud83d\ude00"])
    with pytest.raises(ValidationError, match="surrogates"):
        TurnEntry(id="\ud83d\ude00", content="0" * 64)
    talk = [PlacedTurn(id="\ud83d\ude00", text="x")]
    with pytest.raises(AdmissibilityError, match="surrogates"):
        make_authority().cut(TurnGraph.from_turns(talk), talk[0].id, POLICY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.fixed_dictionaries(
    {
        "kid": st.just("k1") | JSON,
        "ver": st.just("0" * 64) | JSON,
        "iat": st.integers() | JSON,
        "exp": st.integers() | JSON,
        "non": st.just("") | JSON,
    }
)


def write_token(header, signature):
    return f"meve1.{encode(header)}.{encode(signature)}"


def write_sorted(data):
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        JSON,
        st.builds(write_token, st.binary(max_size=90), st.binary(max_size=70)),
        st.builds(write_token, HEADERS.map(write_sorted), st.binary(max_size=70)),
        st.builds(
            lambda header, end: f"meve1.{encode(json.dumps(header).encode())}.{end}", HEADERS, st.text(max_size=9)
        ),
    )
)
def test_any_token_is_parsed_to_its_only_spelling_or_refused(token):
    try:
        header, signature = parse_token(token)
    except AdmissibilityError:
        return
    assert token == f"meve1.{encode(write_canonical(header.to_data()))}.{encode(signature)}"


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.characters(), st.booleans())
def test_no_token_with_a_changed_character_is_accepted(position, character, inserted):
    statement = Statement(
        tenant="t",
        conversation="c",
        anchor="a",
        policy=POLICY,
        turns=write_turns([("a", "0" * 64, 1.0)]),
        closed=write_closed([]),
    )
    token = sign_statement(statement, HEADER, KEY)
    position %= len(token)
    changed = token[:position] + character + token[position + (not inserted) :]
    if changed != token:
        with pytest.raises(AdmissibilityError):
            verify_statement(changed, statement, {"k1": KEY.verifying}, NOW)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["turns", "closed", "token", "version"]), JSON))
def test_any_answer_is_a_valid_slice_or_an_admissibility_error(answer):
    refuse(answer, ".")


ONE = {"id": ["7"], "digest": ["0"], "priority": ["1.0"]}
BESIDE = {"turn": ["4"], "beside": ["3"], "edge": ["child"], "reason": ["edge"], "priority": ["0.5"], "turns": [1]}


@pytest.mark.parametrize(
    "table",
    [None, [], {}, {**ONE, "id": [7]}, {**ONE, "digest": "0"}, {**ONE, "priority": [1.0]}, {**ONE, "more": ["x"]},
     {**ONE, "id": ["7", "6"]}, {"id": ["7"]}],
)  # fmt: skip
def test_malformed_turns_are_refused(answer, table):
    refuse({**answer, "turns": table}, "turns.* in the kernel's answer must")


@pytest.mark.parametrize("column", [{"turns": [True]}, {"turns": ["1"]}, {"priority": [0.5]}, {"edge": [None]}])
def test_malformed_closed_branches_are_refused(answer, column):
    refuse({**answer, "closed": {**BESIDE, **column}}, "closed.* in the kernel's answer must")


@pytest.mark.parametrize("share", ["", "x", "nan", "inf", "-0.1", "1.1", "1e400", "0x1", "\ud800"])
def test_priorities_that_are_no_shares_are_refused(answer, share):
    for name, table in (("turns", ONE), ("closed", BESIDE)):
        refuse({**answer, name: {**table, "priority": [share]}}, "must be between 0 and 1")


def test_statement_header_is_part_of_what_is_signed():
    statement = Statement(
        tenant="t", conversation="c", anchor="a", policy=POLICY, turns=write_turns([]), closed=write_closed([])
    )
    header = Header(key="k1", version="0" * 64, issued=1, expires=2)
    others = [
        replace(header, key="k2"),
        replace(header, version="1" * 64),
        replace(header, issued=2),
        replace(header, expires=3),
        replace(header, nonce="n"),
    ]
    assert len({statement.to_bytes(each, "ed25519") for each in [header, *others]}) == 6
    assert statement.to_bytes(header, "ed25519") != statement.to_bytes(header, "hmac-sha256")


@pytest.mark.parametrize("keys", [[], [1], [KEY], [KEY.verifying, KEY.verifying]])
def test_authority_needs_verifying_keys_only(keys):
    with pytest.raises(ConfigurationError, match="keys must"):
        KernelAuthority("http://127.0.0.1:1", bearer="x", tenant="t", conversation="c", keys=keys)


def test_verifying_key_of_a_public_key_holds_no_secret():
    public = VerifyingKey(id="k1", key=KEY.verifying.key)
    assert public == KEY.verifying
    assert KEY.secret not in (public.key, repr(public).encode())
    assert not hasattr(public, "sign")


def test_earlier_answer_to_the_same_request_is_refused(tmp_path):
    """A slice that was signed before a branch was added is a replay, even within its lifetime."""
    old = make_answer(tmp_path, nonce="first")
    assert make_authority().verify(old, GRAPH, "7", POLICY, "first").turns == SLICE
    for nonce in ("second", ""):
        with pytest.raises(AdmissibilityError, match="replayed"):
            make_authority().verify(old, GRAPH, "7", POLICY, nonce)
    refuse({**old, "token": change_header(old["token"], non="")}, WRONG)
    with pytest.raises(ValidationError, match="nonce must have"):
        make_answer(tmp_path, nonce="n" * 65)
