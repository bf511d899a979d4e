"""Whose an item is: the place that the store names, checked on every call; never a guess."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition

from langchain_meve import MeVeStore
from langchain_meve.graph_store._tenancy import NamespaceError
from meve.errors import ConfigurationError, MeveError, ValidationError
from meve.memory.items.item import item_id

MEMORIES = "memories/{user_id}/*"
ALICE = ("memories", "alice")

GUIDES = [
    # LangGraph: stores, and cross-thread persistence
    ("{user_id}/memories/*", ("alice", "memories"), "k", "alice"),
    (MEMORIES, ("memories", "alice"), "k", "alice"),
    # LangChain: long-term memory
    ("{user_id}/*", ("alice", "chitchat"), "a-memory", "alice"),
    # langmem
    (MEMORIES, ("memories", "user-123"), "k", "user-123"),
    ("memories/*/{user_id}/*", ("memories", "acme", "alice"), "k", "alice"),
    ("agent_smith/memories/{user_id}/*", ("agent_smith", "memories", "alice", "preferences"), "k", "alice"),
    ("email_assistant/{user_id}/*", ("email_assistant", "alice", "collection"), "k", "alice"),
    # deepagents
    ("{user_id}/*", ("alice",), "/memories/preferences.md", "alice"),
    ("{user_id}/*", ("alice", "thread-1"), "/notes.md", "alice"),
    ("filesystem/{user_id}", ("filesystem", "alice"), "/notes.md", "alice"),
    ("*/{user_id}/*", ("assistant-1", "alice"), "/notes.md", "alice"),
    # ints, and addresses
    (MEMORIES, ("memories", 7), "k", 7),
    (MEMORIES, ("memories", "bob@example.com"), "k", "bob@example.com"),
]
"""By guide: a pattern, a namespace that the guide shows, the key, and the owner."""
REFUSED = [
    (MEMORIES, [("alice", "memories"), ("users",), ("memories",), ("memories", ""), ("langgraph", "alice"), ()]),
    ("{user_id}/memories/*", [("alice",), ("alice", "chitchat"), ("memories", "alice"), ("instructions",)]),
    ("memories/*/{user_id}/*", [("memories", "acme"), ("memories", "team_a")]),
    ("filesystem/{user_id}", [("filesystem",), ("assistant-1", "filesystem"), ("filesystem", "alice", "x")]),
]
"""By pattern: namespaces, also of guides, that don't fit it."""


@dataclass
class User:
    user_id: str


@pytest.fixture
def memory(word_memory):
    return word_memory


def owners_of(memory, users):
    return {user: [r.id for r in memory.list(user_id=user)] for user in users if memory.list(user_id=user)}


def in_run(store, call, user):
    """Call a function of a store in a node of a graph whose run has this user."""
    results = []

    def node(state: dict, runtime: Runtime[User]) -> dict:
        results.append(call(runtime.store))
        return state

    graph = StateGraph(dict, context_schema=User).add_node(node).add_edge(START, "node").compile(store=store)
    graph.invoke({"x": 1}, context=User(user))
    return results[0]


@pytest.mark.parametrize(("pattern", "namespace", "key", "owner"), GUIDES)
def test_a_namespace_of_a_guide_gets_the_owner_that_its_pattern_names(memory, pattern, namespace, key, owner):
    store = MeVeStore(memory, pattern)
    store.put(namespace, key, {"text": "zebra"})
    assert memory.items.owners() == [owner]
    assert [record.id for record in memory.list(user_id=owner)] == [item_id(namespace, key)]
    assert store.get(namespace, key).value == {"text": "zebra"}
    assert [item.key for item in store.search(namespace, query="zebra")] == [key]
    assert store.list_namespaces(prefix=namespace) == [namespace]
    assert memory.forget_user(user_id=owner).erased == (item_id(namespace, key),)


@pytest.mark.parametrize(("pattern", "namespaces"), REFUSED)
def test_a_namespace_that_doesnt_fit_is_refused_and_the_error_names_the_line_to_write(memory, pattern, namespaces):
    store = MeVeStore(memory, pattern)
    for namespace in namespaces:
        for operation in (
            lambda each: store.put(each, "k", {"n": 1}),
            lambda each: store.get(each, "k"),
            lambda each: store.delete(each, "k"),
        ):
            with pytest.raises(NamespaceError) as caught:
                operation(namespace)
            assert not namespace or namespace[0] == "langgraph" or "MeVeStore(memory, namespaces=" in str(caught.value)
    assert memory.stats().records == 0


def test_the_key_may_be_the_owner(memory):
    """LangChain's guide keeps what it knows of a user under the namespace ("users",) and the user's id."""
    store = MeVeStore(memory, "users", owner="key")
    store.put(("users",), "user_123", {"name": "John Smith"})
    store.put(("users",), "user_456", {"name": "Ann Li"})
    assert memory.items.owners() == ["user_123", "user_456"]
    assert store.get(("users",), "user_123").value == {"name": "John Smith"}
    with pytest.raises(NamespaceError, match="owner='key'"):
        store.search(("users",))
    with pytest.raises(NamespaceError):
        store.put(("people",), "user_123", {"name": "x"})
    assert [item.key for item in in_run(store, lambda s: s.search(("users",)), "user_456")] == ["user_456"]
    assert len(memory.forget_user(user_id="user_123").erased) == 1


def test_the_user_of_the_run_may_be_the_owner(memory):
    """deepagents' guides have namespaces of an agent, an assistant or a thread, which name no user."""
    store = MeVeStore(memory, owner="run")
    for namespace in (("agent",), ("assistant-1",), ("thread-1", "filesystem"), ("filesystem",)):
        with pytest.raises(NamespaceError, match="owner='run'"):
            store.put(namespace, "/notes.md", {"content": "x"})
        in_run(store, lambda s, each=namespace: s.put(each, "/notes.md", {"content": "of alice"}), "alice")
    assert memory.items.owners() == ["alice"]
    assert in_run(store, lambda s: s.get(("agent",), "/notes.md"), "bob") is None
    assert in_run(store, lambda s: s.search(()), "bob") == []
    assert len(in_run(store, lambda s: s.search(()), "alice")) == 4
    config = {"configurable": {"user_id": "bob"}}
    graph = StateGraph(dict).add_node("node", lambda _: {"x": len(store.search(()))}).add_edge(START, "node").compile()
    assert graph.invoke({"x": 0}, config) == {"x": 0}


async def test_async_calls_know_the_user_of_their_run(memory):
    store = MeVeStore(memory, owner="run")

    async def node(state: dict, runtime: Runtime[User]) -> dict:
        await runtime.store.aput(("agent",), "k", {"n": 1})
        return {"x": len(await runtime.store.asearch(("agent",)))}

    graph = StateGraph(dict, context_schema=User).add_node(node).add_edge(START, "node").compile(store=store)
    for user in ("alice", "bob"):
        assert await graph.ainvoke({"x": 0}, context=User(user)) == {"x": 1}
    assert memory.items.owners() == ["alice", "bob"]


@pytest.mark.parametrize(
    ("options", "namespace"),
    [
        ({"namespaces": "{user_id}/*"}, ("acme",)),  # deepagents' guide keeps policies under the organisation
        ({"namespaces": "{user_id}/*"}, ("agent",)),
        ({"namespaces": MEMORIES}, ("memories", "bob")),
        ({"namespaces": MEMORIES}, ("memories", "team-product")),
        ({"user_id": "bob"}, ("memories", "alice")),
    ],
)
def test_a_run_reaches_nothing_of_another_owner(memory, options, namespace):
    store = MeVeStore(memory, **options)
    store.put(namespace, "k", {"n": 1})
    for call in (
        lambda s: s.put(namespace, "k", {"n": 2}),
        lambda s: s.get(namespace, "k"),
        lambda s: s.search(namespace),
        lambda s: s.list_namespaces(prefix=namespace),
        lambda s: s.delete_namespace(namespace),
    ):
        with pytest.raises(NamespaceError, match="the user of this run is 'alice'"):
            in_run(store, call, "alice")
    assert store.get(namespace, "k").value == {"n": 1}


def test_shared_namespaces_have_the_owner_that_the_operator_names(memory):
    store = MeVeStore(memory, "{user_id}/*", shared={"policies/*": "acme", "agent": "acme"})
    for namespace in (("policies",), ("policies", "travel"), ("agent",)):
        in_run(store, lambda s, each=namespace: s.put(each, "k", {"text": "zebra"}), "alice")
        assert in_run(store, lambda s, each=namespace: s.get(each, "k"), "bob").value == {"text": "zebra"}
    assert memory.items.owners() == ["acme"]
    assert len(in_run(store, lambda s: s.search(("policies",)), "bob")) == 2
    in_run(store, lambda s: s.put(("bob", "x"), "k", {"n": 1}), "bob")
    with pytest.raises(NamespaceError):
        store.search(())
    assert len(memory.forget_user(user_id="acme").erased) == 3


def test_a_prefix_above_a_shared_namespace_is_refused(memory):
    store = MeVeStore(memory, "{user_id}/*", shared={"acme/policies/*": "acme-owner"})
    store.put(("acme", "policies"), "k", {"n": 1})
    with pytest.raises(NamespaceError):
        store.search(("acme",))


@pytest.mark.parametrize("prefix", [(), ("memories",), ("facts", "alice")])
def test_a_prefix_that_names_no_owner_is_refused(memory, prefix):
    store = MeVeStore(memory, MEMORIES)
    store.put(ALICE, "k", {"n": 1})
    for operation in (
        lambda: store.search(prefix),
        lambda: store.search(prefix, query="what?"),
        lambda: store.list_namespaces(prefix=prefix),
        lambda: store.list_namespaces(prefix=(*prefix, "*")),
        lambda: store.delete_namespace(prefix),
        lambda: store.batch([ListNamespacesOp((MatchCondition("suffix", ("alice",)),))]),
    ):
        with pytest.raises(NamespaceError, match="MeVeStore"):
            operation()


def test_an_operator_may_read_across_owners(memory, clock):
    MeVeStore(memory, MEMORIES).put(ALICE, "a", {"text": "zebra"})
    clock.advance(timedelta(minutes=1))
    MeVeStore(memory, MEMORIES).put(("memories", "bob"), "b", {"text": "zebra crossing"})
    store = MeVeStore(memory, MEMORIES, across_owners=True)
    assert [item.key for item in store.search(())] == ["b", "a"]
    MeVeStore(memory, MEMORIES).put(("memories", "bob"), "c", {"text": "a lamp"})
    MeVeStore(memory, user_id="bob").put(("memories", "alice"), "d", {"text": "zebra"})  # not by this store's rules
    pages = [store.search(("memories",), query="zebra", limit=1, offset=n)[0] for n in range(3)]
    assert [item.key for item in pages] in (["a", "b", "c"], ["b", "a", "c"])
    assert pages[1].score > pages[2].score
    assert store.list_namespaces() == [ALICE, ("memories", "bob")]
    assert [item.key for item in store.search(ALICE)] == ["a"]
    assert MeVeStore(memory, "users", owner="key", across_owners=True).list_namespaces() == []
    for call in (lambda: store.delete_namespace(()), lambda: store.search(("elsewhere",))):
        with pytest.raises(NamespaceError):
            call()
    with pytest.raises(NamespaceError):  # a run of a user is no operator's
        in_run(store, lambda s: s.search(()), "alice")


@pytest.mark.parametrize("owner", ["alice", 1])
def test_user_reads_no_item_of_another_user(memory, owner):
    """Not by key, prefix, query, filter, page or listing; 1 and "1" are two users."""
    store = MeVeStore(memory, MEMORIES)
    store.put(("memories", owner), "k", {"text": "zebra", "n": 1})
    for other in ("bob", "Alice", "alic", "1", 2):
        scope = ("memories", other)
        assert store.get(scope, "k") is None
        assert store.search(scope) == store.search(scope, query="zebra") == store.search(scope, filter={"n": 1}) == []
        assert store.search(scope, offset=0, limit=1_000) == store.list_namespaces(prefix=scope) == []
        store.delete(scope, "k")
        store.delete_namespace(scope)
    assert store.get(("memories", owner), "k").value == {"text": "zebra", "n": 1}


def test_a_store_of_one_owner_accepts_any_namespace(memory):
    alice_store = MeVeStore(memory, user_id="alice")
    alice_store.put(("users",), "k", {"n": 1})
    MeVeStore(memory, MEMORIES).put(ALICE, "k", {"n": 2})
    MeVeStore(memory, MEMORIES).put(("memories", "bob"), "k", {"n": 3})
    assert alice_store.list_namespaces() == [("memories", "alice"), ("users",)]
    assert sorted(item.value["n"] for item in alice_store.search(())) == [1, 2]
    assert alice_store.get(("memories", "bob"), "k") is None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, r"say whose the items are: MeVeStore\(memory, namespaces='users/\{user_id\}/\*'\)"),
        ({"namespaces": "memories/*"}, "name {user_id} once"),
        ({"namespaces": "{user_id}/{user_id}"}, "name {user_id} once"),
        ({"namespaces": "{user_id}/{thread}"}, "no other placeholder"),
        ({"namespaces": "a//{user_id}"}, "labels between slashes"),
        ({"namespaces": ("memories", "{user_id}")}, "labels between slashes"),
        ({"namespaces": "users/{user_id}", "owner": "key"}, "not name {user_id}"),
        ({"owner": "key"}, "say whose the items are"),
        ({"owner": "value", "namespaces": "x"}, "owner must be one of"),
        ({"user_id": "alice", "namespaces": MEMORIES}, "user_id names the only owner"),
        ({"user_id": "alice", "across_owners": True}, "user_id names the only owner"),
        ({"namespaces": MEMORIES, "shared": {"x/{user_id}": "acme"}}, "not name {user_id}"),
        ({"namespaces": MEMORIES, "shared": {"x/*": ""}}, "user_id must not be blank"),
    ],
)
def test_a_store_that_doesnt_say_whose_items_are_is_refused(memory, options, why):
    with pytest.raises((ConfigurationError, ValidationError), match=why):
        MeVeStore(memory, **options)


def test_namespace_error_is_langgraphs_error(memory):
    with pytest.raises(InvalidNamespaceError):
        MeVeStore(memory, MEMORIES).put((), "k", {"n": 1})
    assert issubclass(NamespaceError, MeveError)
