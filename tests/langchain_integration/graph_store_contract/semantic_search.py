"""Contract rules of searches with a query."""

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

TEXTS = {"sky": "wide blue sky", "sea": "deep blue sea", "bread": "fresh warm bread", "zoo": "zebra zoo"}


class SemanticSearchRules:
    """A query ranks items by similarity."""

    def _put_texts(self, client: StoreClient) -> None:
        for key, text in TEXTS.items():
            client.put(client.ns("docs"), key, {"text": text})

    def test_most_similar_item_is_first(self, client: StoreClient) -> None:
        """The item most similar to the query comes first, and scores fall from there."""
        self._put_texts(client)
        for key, text in TEXTS.items():
            items = client.search(client.ns("docs"), query=text)
            scores = [item.score for item in items]
            assert items[0].key == key
            assert all(isinstance(score, float) for score in scores)
            assert scores == sorted(scores, reverse=True)

    def test_query_ranks_all_items(self, client: StoreClient) -> None:
        """A query ranks all items under the prefix, and only `limit` cuts them."""
        self._put_texts(client)
        assert len(client.search(client.ns("docs"), query="zebra zoo")) == len(TEXTS)
        assert len(client.search(client.ns("docs"), query="zebra zoo", limit=2)) == 2

    def test_query_stays_within_prefix(self, client: StoreClient) -> None:
        """A query returns nothing outside its prefix, however similar."""
        self._put_texts(client)
        client.put(client.ns("other"), "twin", {"text": TEXTS["zoo"]})
        client.put(client.ns("docs2"), "twin", {"text": TEXTS["zoo"]})
        assert "twin" not in client.keys(client.ns("docs"), query=TEXTS["zoo"])

    def test_filter_applies_before_limit(self, client: StoreClient) -> None:
        """A filter applies before `limit`, so rejected items displace nothing."""
        for n in range(30):
            client.put(client.ns("docs"), f"k{n}", {"text": "zebra zoo", "wanted": False})
        client.put(client.ns("docs"), "mine", {"text": "fresh warm bread", "wanted": True})
        assert client.keys(client.ns("docs"), query="zebra zoo", filter={"wanted": True}, limit=3) == ["mine"]

    def test_replaced_value_is_found_by_new_text(self, client: StoreClient) -> None:
        """A replaced value is found by its new text, and not by its old one."""
        self._put_texts(client)
        client.put(client.ns("docs"), "sky", {"text": "quick quiet queen"})
        assert client.keys(client.ns("docs"), query="quick quiet queen")[0] == "sky"
        assert client.keys(client.ns("docs"), query=TEXTS["sky"])[0] != "sky"

    def test_deleted_item_is_not_found_by_query(self, client: StoreClient) -> None:
        """No query returns a deleted item."""
        self._put_texts(client)
        client.delete(client.ns("docs"), "zoo")
        assert "zoo" not in client.keys(client.ns("docs"), query=TEXTS["zoo"])

    def test_unindexed_item_has_no_score(self, client: StoreClient) -> None:
        """An item put with `index=False` has no score, and comes after all items with one."""
        self._put_texts(client)
        client.put(client.ns("docs"), "twin", {"text": TEXTS["zoo"]}, False)
        items = client.search(client.ns("docs"), query=TEXTS["zoo"])
        scored = [item.score is not None for item in items]
        assert scored == sorted(scored, reverse=True)
        assert all(item.score is None for item in items if item.key == "twin")
        assert client.value(client.ns("docs"), "twin") == {"text": TEXTS["zoo"]}

    def test_put_with_index_false_ends_indexing(self, client: StoreClient) -> None:
        """An item put again with `index=False` isn't found by its old text any more."""
        self._put_texts(client)
        client.put(client.ns("docs"), "zoo", {"text": TEXTS["zoo"]}, False)
        assert [i.score for i in client.search(client.ns("docs"), query=TEXTS["zoo"]) if i.key == "zoo"] in (
            [],
            [None],
        )

    def test_index_paths_select_searched_text(self, client: StoreClient) -> None:
        """With `index=[…]`, an item is found by the text at these paths only."""
        value = {"shown": [{"text": "quick queen"}, {"text": "zebra zoo"}], "hidden": "fresh warm bread"}
        client.put(client.ns("docs"), "k", value, ["shown[*].text"])
        client.put(client.ns("docs"), "other", {"text": "fresh apple bread"}, ["text"])
        assert client.keys(client.ns("docs"), query="quick queen zebra zoo")[0] == "k"
        assert client.keys(client.ns("docs"), query="fresh warm bread")[0] == "other"

    def test_query_pages_cover_each_item_once(self, client: StoreClient) -> None:
        """Pages of a query contain each item at most once, and all items with a score."""
        for n in range(6):
            client.put(client.ns("docs"), f"k{n}", {"text": f"zebra {'zoo ' * n}"})
        for n in range(4):
            client.put(client.ns("docs"), f"x{n}", {"text": "unseen"}, False)
        pages = [client.keys(client.ns("docs"), query="zebra", limit=4, offset=offset) for offset in (0, 4, 8, 12)]
        keys = [key for page in pages for key in page]
        assert len(keys) == len(set(keys))
        assert {f"k{n}" for n in range(6)} <= set(keys)
