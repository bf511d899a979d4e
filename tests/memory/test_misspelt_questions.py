"""Test that a search corrects the misspelt words of a question, by what it may find."""


def test_a_misspelt_question_finds_its_memory(memory):
    memory.add("The dentist is in Grynbodgatan.", user_id="ann")
    memory.add("My kayak is green.", user_id="ann")
    recall = memory.search("which street is the detnist in", user_id="ann", limit=1)
    assert recall.records[0].text == "The dentist is in Grynbodgatan."
    assert (recall.query, recall.corrections) == ("which street is the detnist in", {"detnist": "dentist"})
    assert memory.search("where is the dentist", user_id="ann").corrections == {}


def test_no_correction_tells_of_what_a_search_may_not_find(memory):
    memory.add("I paid for the Zworykinia.", user_id="ann")
    memory.add("The code of the Blorptonia is 4711.", user_id="ann", policy_class="private")
    memory.add("I have a green kayak.", user_id="bob")

    def corrections(word, user, **options):
        return memory.search(f"tell me of the {word}", user_id=user, **options).corrections

    assert corrections("zworykinnia", "ann") == {"zworykinnia": "zworykinia"}
    assert corrections("zworykinnia", "bob") == {}
    assert corrections("blorptonnia", "ann", include_private=True) == {"blorptonnia": "blorptonia"}
    assert corrections("blorptonnia", "ann") == {}


def test_an_erased_word_is_forgotten(memory):
    record = memory.add("I paid for the Zworykinia.", user_id="ann")
    memory.add("I have a green kayak.", user_id="ann")
    memory.delete(record.id, user_id="ann")
    assert memory.search("tell me of the zworykinnia", user_id="ann").corrections == {}
