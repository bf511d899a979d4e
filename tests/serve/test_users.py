"""Two users of one server: neither sees or changes what belongs to the other, by any door. Tokens are what decides."""

import json
import stat
import threading

import pytest

from meve.errors import ConfigurationError, DuplicateIdError, UnknownIdError, ValidationError
from meve.service.server.tokens import TokenFile
from tests.serve.servers import make_tokens, open_memory, serve

SECRET = "The wardrobe hides a violin."


async def call_mcp(served, who, name, arguments):
    async with served.connect(who) as client:
        result = await client.call_tool(name, arguments)
    return (not result.is_error), json.dumps(result.structured_content) + result.content[0].text


async def call_rest(served, who, name, arguments):
    answer = served.post(name, arguments, who)
    return answer.status_code == 200, answer.text


DOORS = pytest.mark.parametrize("call", [call_mcp, call_rest])


@DOORS
async def test_users_neither_see_nor_change_each_others_memories(served, call):
    kept = served.post("remember", {"text": SECRET}, "anna").json()
    trace = served.post("recall", {"query": SECRET}, "anna").json()["trace_id"]
    for name, arguments in (
        ("recall", {"query": SECRET}),
        ("explain", {"about": SECRET}),
        ("explain", {"what": "memory", "about": kept["id"]}),
        ("explain", {"what": "trace", "about": trace}),
        ("update", {"id": kept["id"], "text": "The wardrobe is empty."}),
        ("forget", {"id": kept["id"]}),
    ):
        done, told = await call(served, "bob", name, arguments)
        assert done == (name == "recall" or arguments == {"about": SECRET}), (name, told)
        assert "violin" not in told
        assert name == "update" or "hides" not in told
    assert [each["id"] for each in served.post("recall", {"query": SECRET}, "reader").json()["memories"]] == [
        kept["id"]
    ]
    own = served.post("remember", {"text": SECRET}, "bob").json()  # of the same day and words, so of the same id
    assert (own["id"], own["added"]) == (kept["id"], True)
    assert served.post("forget", {"id": own["id"]}, "bob").status_code == 200
    assert served.post("recall", {"query": SECRET}, "anna").json()["memories"]
    assert served.post("forget", {"id": kept["id"]}, "anna").status_code == 200


async def test_users_cannot_read_each_others_resources(served):
    kept = served.post("remember", {"text": SECRET}, "anna").json()
    trace = served.post("search_documents", {"query": "tomatoes"}, "anna").json()["trace_id"]
    async with served.connect("reader") as client:
        for uri in (f"meve://memory/{kept['id']}", f"meve://trace/{trace}"):
            assert (await client.read_resource(uri)).contents
    async with served.connect("bob") as client:
        for uri in (f"meve://memory/{kept['id']}", f"meve://trace/{trace}"):
            with pytest.raises(Exception, match=r"no (memory|trace)"):
                await client.read_resource(uri)


@DOORS
async def test_token_that_only_reads_changes_nothing(served, memory, call):
    kept = served.post("remember", {"text": "The cellar is dry."}, "anna").json()
    for name, arguments in (
        ("remember", {"text": "The cellar is wet."}),
        ("update", {"id": kept["id"], "text": "The cellar is wet."}),
        ("forget", {"id": kept["id"]}),
    ):
        done, told = await call(served, "reader", name, arguments)
        assert not done
        assert "this token may only read" in told
    text = served.post("recall", {"query": "Is the cellar dry?"}, "reader").json()["text"]
    assert "dry" in text
    assert "wet" not in text
    shown = served.post("show_memory", {"id": kept["id"]}, "anna's inspector").json()
    assert [each["action"] for each in shown["events"]][:2] == ["add", "retrieve"]
    assert shown["memory"]["touched_at"] is not None


async def test_what_the_user_said_is_not_changed_by_a_tool(tmp_path):
    """What a tool remembers isn't the user's own word, and passes the gate of every writer."""
    with open_memory(tmp_path) as memory, serve(memory=memory) as served:
        memory.add("I live in Oslo.", user_id="anna", id="home")
        done, told = await call_mcp(served, "anna", "update", {"id": "home", "text": "I live in Rome."})
        assert (done, "only the user can change" in told) == (False, True)
        refused = served.post("update", {"id": "home", "text": "I live in Rome."})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "users_word")
        kept = served.post("remember", {"text": "The password of the bank is hunter2hunter2."}).json()
        record = memory.get(kept["id"], user_id="anna")
        assert (record.source, record.policy_class) == ("chat_assistant", "private")
        assert "hunter2" not in served.post("recall", {"query": "What is the password of the bank?"}).text
        for name, more in (("forget", {}), ("update", {"text": "It is new."})):
            told = [served.post(name, {"id": each, **more}).json()["error"]["message"] for each in (kept["id"], "none")]
            assert told[0].replace(kept["id"], "none") == told[1]  # it doesn't tell which private memories there are
        said = memory.messages.add("s", [{"role": "user", "content": "Hello."}], user_id="anna")
        told = {
            hidden: served.post("explain", {"what": "memory", "about": hidden})
            for hidden in (kept["id"], *said, "none")
        }
        assert {each.status_code for each in told.values()} == {404}
        assert len({each.text.replace(hidden, "none") for hidden, each in told.items()}) == 1


@DOORS
async def test_forget_hides_what_the_user_said(tmp_path, call):
    with open_memory(tmp_path) as memory, serve(memory=memory) as served:
        memory.add("I live in Oslo.", user_id="anna", id="home")
        done, told = await call(served, "anna", "forget", {"id": "home"})
        assert (done, "Hidden, not erased: home." in told) == (True, True)
        assert served.post("forget", {"id": "home"}).status_code == 404
        done, told = await call(served, "anna", "explain", {"what": "memory", "about": "home"})
        assert (done, "Oslo" in told) == (False, False)
        shown = served.post("show_memory", {"id": "home"}, "anna's inspector").json()
        assert shown["memory"]["text"] == "I live in Oslo."
        assert memory.list(user_id="anna") == []
        assert memory.restore("home", user_id="anna").text == "I live in Oslo."


def test_forget_erases_what_the_user_said_if_the_server_lets_it(tmp_path):
    with open_memory(tmp_path) as memory, serve(memory=memory, may_erase=True) as served:
        memory.add("I live in Oslo.", user_id="anna", id="home")
        answer = served.post("forget", {"id": "home"}).json()
        assert (answer["erased"], answer["hidden"]) == (["home"], [])


@DOORS
async def test_recall_shows_the_standing_wishes(tmp_path, call):
    with open_memory(tmp_path) as memory, serve(memory=memory) as served:
        memory.add("Always answer in German.", user_id="anna", id="wish")
        memory.add("I live in Oslo.", user_id="anna", id="home")
        done, told = await call(served, "anna", "recall", {"query": "Where do I live? Do I live in Germany?"})
        assert done
        assert told.count("the user's standing wishes") == told.count("Always answer in German.") > 0
        assert [each["id"] for each in served.post("recall", {"query": "German?"}).json()["memories"]] != ["wish"]


def test_no_requests_share_a_user(tmp_path):
    with open_memory(tmp_path) as memory:
        tokens, given = make_tokens(tmp_path)
        with serve(memory=memory, tokens=tokens) as served:
            served.tokens = given

            def write(who):
                for n in range(10):
                    assert served.post("remember", {"text": f"{who} owns book number {n}."}, who).status_code == 200

            threads = [threading.Thread(target=write, args=(who,)) for who in ("anna", "bob")]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        for who in ("anna", "bob"):
            assert all(record.text.startswith(who) for record in memory.list(user_id=who))
            assert len(memory.list(user_id=who)) == 10


@pytest.fixture
def file(tmp_path):
    return TokenFile(tmp_path / "tokens.json")


def test_file_holds_hashes_and_is_private(file):
    token = file.grant("anna", read_only=True, name="laptop")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert token not in file.path.read_text()
    grant = file.authenticate(token)
    assert (grant.name, grant.user, grant.read_only) == ("laptop", "anna", True)
    assert file.authenticate(grant.hash) is None
    assert file.authenticate("\ud800") is None


def test_change_counts_at_once_in_every_process(file):
    first = file.grant("anna", name="first")
    other = TokenFile(file.path)
    second = other.grant(5, name="second")
    assert (file.authenticate(first).user, file.authenticate(second).user) == ("anna", 5)
    other.revoke("first")
    assert file.authenticate(first) is None
    assert [each.name for each in file.grants()] == ["second"]


def test_file_that_vanished_or_was_damaged_refuses_everybody(file, caplog):
    token = file.grant("anna")
    content = file.path.read_text()
    for damage in (lambda: file.path.write_text("{"), lambda: file.path.chmod(0o640), file.path.unlink):
        damage()
        assert file.authenticate(token) is None
        file.path.write_text(content)
        file.path.chmod(0o600)
        assert file.authenticate(token).user == "anna"
    assert "every token is refused" in caplog.text


def test_wrong_grants_are_refused(file, tmp_path):
    with pytest.raises(ConfigurationError, match="there is no token file"):
        file.grants()
    file.grant("anna", name="laptop")
    with pytest.raises(DuplicateIdError, match="laptop"):
        file.grant("bob", name="laptop")
    with pytest.raises(UnknownIdError, match="phone"):
        file.revoke("phone")
    with pytest.raises(ValidationError):
        file.grant(" ")
    with pytest.raises(ConfigurationError, match="there is no folder"):
        TokenFile(tmp_path / "nowhere" / "tokens.json").grant("anna")
    assert len(file.grants()) == 1


def test_grants_of_several_processes_are_all_kept(file):
    threads = [threading.Thread(target=TokenFile(file.path).grant, args=(n,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.user for each in file.grants()) == [*range(8)]
