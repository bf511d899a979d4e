"""Rules of searches by a question."""

import pytest

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

TEXTS = {"sky": "wide blue sky", "sea": "deep blue sea", "bread": "fresh warm bread", "zoo": "zebra zoo"}


@pytest.mark.usefixtures("searching")
class SemanticSearchRules:
    """A question finds what is like it."""

    def _told(self, client: StoreClient) -> None:
        for key, text in TEXTS.items():
            client.put(client.at("docs"), key, {"text": text})

    def test_the_likest_comes_first(self, client: StoreClient) -> None:
        """The item that says what is asked comes first, and scores fall from there."""
        self._told(client)
        for key, text in TEXTS.items():
            found = client.search(client.at("docs"), query=text)
            scores = [item.score for item in found]
            assert found[0].key == key
            assert all(isinstance(score, float) for score in scores)
            assert scores == sorted(scores, reverse=True)

    def test_all_are_ranked(self, client: StoreClient) -> None:
        """A question ranks everything under the prefix, and cuts at `limit` alone."""
        self._told(client)
        assert len(client.search(client.at("docs"), query="zebra zoo")) == len(TEXTS)
        assert len(client.search(client.at("docs"), query="zebra zoo", limit=2)) == 2

    def test_a_question_keeps_to_its_prefix(self, client: StoreClient) -> None:
        """Nothing outside the prefix is found, however like the question."""
        self._told(client)
        client.put(client.at("other"), "twin", {"text": TEXTS["zoo"]})
        client.put(client.at("docs2"), "twin", {"text": TEXTS["zoo"]})
        assert "twin" not in client.keys(client.at("docs"), query=TEXTS["zoo"])

    def test_a_filter_holds_before_the_cut(self, client: StoreClient) -> None:
        """A filter is asked before `limit` cuts: what is like the question crowds nothing out."""
        for n in range(30):
            client.put(client.at("docs"), f"k{n}", {"text": "zebra zoo", "wanted": False})
        client.put(client.at("docs"), "mine", {"text": "fresh warm bread", "wanted": True})
        assert client.keys(client.at("docs"), query="zebra zoo", filter={"wanted": True}, limit=3) == ["mine"]

    def test_a_new_value_is_found_by_what_it_says(self, client: StoreClient) -> None:
        """A new value is found by what it says, and not by what the old one said."""
        self._told(client)
        client.put(client.at("docs"), "sky", {"text": "quick quiet queen"})
        assert client.keys(client.at("docs"), query="quick quiet queen")[0] == "sky"
        assert client.keys(client.at("docs"), query=TEXTS["sky"])[0] != "sky"

    def test_what_is_deleted_is_not_found(self, client: StoreClient) -> None:
        """A deleted item isn't found by any question."""
        self._told(client)
        client.delete(client.at("docs"), "zoo")
        assert "zoo" not in client.keys(client.at("docs"), query=TEXTS["zoo"])

    def test_what_is_not_indexed_has_no_score(self, client: StoreClient) -> None:
        """An item that was put with `index=False` has no score, and none that has one comes after it."""
        self._told(client)
        client.put(client.at("docs"), "twin", {"text": TEXTS["zoo"]}, False)
        found = client.search(client.at("docs"), query=TEXTS["zoo"])
        scored = [item.score is not None for item in found]
        assert scored == sorted(scored, reverse=True)
        assert all(item.score is None for item in found if item.key == "twin")
        assert client.value(client.at("docs"), "twin") == {"text": TEXTS["zoo"]}

    def test_indexing_can_be_ended(self, client: StoreClient) -> None:
        """An item that is put anew with `index=False` isn't found by its old words any more."""
        self._told(client)
        client.put(client.at("docs"), "zoo", {"text": TEXTS["zoo"]}, False)
        assert [i.score for i in client.search(client.at("docs"), query=TEXTS["zoo"]) if i.key == "zoo"] in ([], [None])

    def test_an_index_names_what_is_searched(self, client: StoreClient) -> None:
        """With `index=[…]` an item is found by what lies at these paths, and by nothing else."""
        value = {"shown": [{"text": "quick queen"}, {"text": "zebra zoo"}], "hidden": "fresh warm bread"}
        client.put(client.at("docs"), "k", value, ["shown[*].text"])
        client.put(client.at("docs"), "other", {"text": "fresh apple bread"}, ["text"])
        assert client.keys(client.at("docs"), query="quick queen zebra zoo")[0] == "k"
        assert client.keys(client.at("docs"), query="fresh warm bread")[0] == "other"

    def test_pages_of_a_question_cover_everything_once(self, client: StoreClient) -> None:
        """Pages of a question hold each item at most once, and none that has a score is missing."""
        for n in range(6):
            client.put(client.at("docs"), f"k{n}", {"text": f"zebra {'zoo ' * n}"})
        for n in range(4):
            client.put(client.at("docs"), f"x{n}", {"text": "unseen"}, False)
        pages = [client.keys(client.at("docs"), query="zebra", limit=4, offset=offset) for offset in (0, 4, 8, 12)]
        found = [key for page in pages for key in page]
        assert len(found) == len(set(found))
        assert {f"k{n}" for n in range(6)} <= set(found)
