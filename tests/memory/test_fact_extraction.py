"""Facts by rules: what a user tells of himself is kept, and small talk, pasted text and suppositions are not."""

import pytest

from meve.memory._classify.fact_extraction import extract_statements

TRACEBACK = """My script fails.
Traceback (most recent call last):
  File "tea.py", line 3, in <module>
    raise ValueError("I live in Lyon")
ValueError: I live in Lyon
I use Python 3.12."""
CODE = """I write Go.
```python
owner = "I am Ann"
```
def brew(cups):
    return cups * 2
"""
LOG = "2026-05-01 12:00:01 ERROR My pump failed\nINFO I am ready"


@pytest.mark.parametrize(
    "text",
    [
        "I see.", "Thanks so much, Maria!", "That's really cool, John.", "I totally agree!", "You got this!",
        "I appreciate your support.", "Me too.", "Good luck with the exam!", "No worries, Sam.",
        "I'm sure you will do well.",
        "Hello, friend!", "Hello, my AI companion.", "Hi there Ann", "Gotta go.", "Way to go, Maria!", "See you soon!",
        "I have to go now, talk to you later.", "It was great talking to you.",
        "Glad my support means a lot to you!", "I can't wait!", "Haha, yes, exactly.", "Lol, indeed!",
        "Thank you, that's all for today!", "OK, that will be all.",
    ],
)  # fmt: skip
def test_small_talk_states_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Haha, thanks, you made my day.", "lol never mind", "Hahaha you're killing me!", "Lol, I can't even.",
        "omg I'm dead", "Whoops, my bad.", "Never mind, I figured it out.", "Hehe, I knew you'd say that.",
        "I owe you one!", "I'm just kidding.", "Nevermind, forget I asked.", "Hahah I'm speechless.", "rofl good one",
        "Ugh, my mistake.", "You crack me up, lol.", "Ha, I walked right into that one.",
        "haha I can\u2019t stop laughing", "Haha you know me too well.", "lol I was just teasing",
    ],
)  # fmt: skip
def test_banter_states_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Haha, yeah, I'm allergic to nuts.", "lol I've got three cats", "Haha, thanks, I'm a nurse so I know.",
        "omg I'm dead to see Japan, we fly there in May", "Never mind the cost, I have a budget of 5000 euros.",
        "lol never mind that, my sister Anna lives in Kiel", "Haha, you made my day, I got the job at Siemens!",
        "lol my bad, I meant my appointment is on Friday", "You crack me up, I'm vegan.", "I can't stop smoking.",
        "I can't even drive, I never got a licence.", "My bad knee is the left one.", "I owe my brother 200 euros.",
        "I owe you one thing: my name is Tim.", "I'm just kidding, I'm 40.", "haha ok I work nights",
        "I'm dying of boredom in my job at the bank.", "Lol I never mind the rain, I cycle all year.",
        "lol I'm dead serious, I quit my job.", "Haha I can't breathe at night because of my asthma",
        "Just joking aside, my rent is 900 euros.", "Haha I give up sugar every January.", "Heather is my sister.",
        "Hal is my brother.", "lol you called me on Friday",
    ],
)  # fmt: skip
def test_fact_told_with_laughter_is_kept(text):
    assert extract_statements(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Cancel my order.", "Book me a table for two.", "Just look at my to-do list!", "No, I mean please cancel it.",
        "Now I want you to find me a park.", "Send the report to my boss.", "The flat sounds good.",
        "A lot has happened since we last spoke.", "Haven't talked in a few days.", "If you need me, I'm here for you.",
    ],
)  # fmt: skip
def test_command_and_talk_about_the_talk_state_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Book club meets at my house.", "Change is hard for me.", "Show jumping is my hobby.",
        "I got married since we last spoke.", "Stop calling me Bob.", "The key to my flat looks like a spoon.",
        "Kim gave us a dog.",
    ],
)  # fmt: skip
def test_statement_that_begins_like_a_command_is_kept(text):
    assert extract_statements(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Could you please remind me to order linen on Friday?", "Remind me that the rent is due on the 3rd.",
        "Can you remind me tomorrow at 5 to take the bread out?", "Please don't let me forget to call Ann.",
    ],
)  # fmt: skip
def test_what_the_user_asks_to_be_reminded_of_is_kept(text):
    assert extract_statements(text) == [text]


def test_reminder_after_a_supposition_is_kept():
    reminder = "Could you remind me to order linen?"
    assert extract_statements(f"If I lived in Lyon, I would cycle. {reminder}") == [reminder]


@pytest.mark.parametrize(
    "text", ["Remind me what I said about linen.", "Can you remind me where I live?", "Remind me again how this works."]
)
def test_question_for_something_forgotten_states_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Lyon, I would cycle to work.", "Suppose I live in Lyon. Then I would need a bike.",
        "Imagine I am a pilot.", "Let's say my budget is 900 euros.", "What if I moved to Rome?",
        "I wish I had a garden.", "I would cook more if I had a bigger kitchen.",
        "Unless I move someday.", "Say I earn 5000 euros a month.",
    ],
)  # fmt: skip
def test_supposition_is_no_fact(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I eat nuts, I get a rash.", "I'd like tea if you have it.", "My son is allergic to milk.",
        "Allergic to nuts.",
        "I don't drink coffee.", "Call me Bob.", "Always answer in German.", "Please keep your answers short.",
        "My wife would rather live in Rome.", "Her name is Shadow!", "It is 9 in Oslo.", "The shop opens at 9.",
        "It's Susie!", "Hi, vegetarian cook from Bonn here.",
        "I have to go to the dentist on Friday.", "I was thinking about trying painting.", "I hope to move to Rome.",
    ],
)  # fmt: skip
def test_what_a_user_tells_is_kept(text):
    assert extract_statements(text) == [text]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (TRACEBACK, ["My script fails.", "I use Python 3.12."]),
        (CODE, ["I write Go."]),
        (LOG, []),
        ("I live in Oslo. Translate this: I live in Rome.", ["I live in Oslo."]),
        ("Summarize this article:\n\nI was born in Lyon. My name is Luc.", []),
        ("> I live in Rome.\nI live in Oslo.", ["I live in Oslo."]),
        ("<document>I live in Rome.</document>\nI live in Oslo.", ["I live in Oslo."]),
        ('"I was born in Lyon, and I have lived there since, with two cats."\nI like this poem by Luc.',
         ["I like this poem by Luc."]),
    ],
)  # fmt: skip
def test_pasted_text_is_not_what_the_user_says(text, facts):
    assert extract_statements(text) == facts


def test_long_text_about_others_is_pasted():
    """What speaks of the user in it is kept."""
    article = " ".join(f"The city grew by {n} districts in 19{n}." for n in range(20, 50))
    assert extract_statements(f"What does this article say? {article} I live there.") == ["I live there."]


def test_long_turn_about_the_user_is_kept():
    told = [f"I planted {n} trees in 19{n}." for n in range(20, 50)]
    assert extract_statements(" ".join([*told, "The oaks grew best."])) == [*told, "The oaks grew best."]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Hello, my name is Jason.", ["My name is Jason."]),
        ("hey there :) so I'm Nils, I build organs.", ["I'm Nils, I build organs."]),
        ("hey there :) always answer in German", ["Always answer in German"]),
        ("Hey there Delilah is my favourite song.", ["Hey there Delilah is my favourite song."]),
        ("Somebody stole my bike!! I could cry.", ["Somebody stole my bike!!"]),
        ("We won the cup!! My brother scored twice.", ["We won the cup!!", "My brother scored twice."]),
        ("I hate people.", []),
        ("I hate olives.", ["I hate olives."]),
        ("It's a girl!", ["It's a girl!"]),
        ("They had a baby. It's a girl!", ["They had a baby. It's a girl!"]),
        ("They had a laugh.", []),
    ],
)
def test_greetings_and_comments_are_cut_and_births_are_told(text, facts):
    assert extract_statements(text) == facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I'm allergic to nuts, what can I eat?", ["I'm allergic to nuts."]),
        ("I love jazz, so can you play some?", ["I love jazz."]),
        ("I'm allergic to penicillin, you know?", ["I'm allergic to penicillin."]),
        ("My mum's birthday is on 3 March, isn't that great?", ["My mum's birthday is on 3 March."]),
        ("Since I'm diabetic, what can I eat for breakfast?", ["I'm diabetic."]),
        ("Now that my dog died, where can I go?", ["My dog died."]),
        ("I live in Cork, right?", []),
        ("I wonder, isn't it late?", []),
        ("I wonder, is it late?", []),
        ("Where do I live, in Oslo or in Rome?", []),
    ],
)
def test_fact_told_before_a_question_is_kept(text, facts):
    assert extract_statements(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "Moved!", "Just moved!", "Loved it.", "Absolutely loved it!", "Same here.", "Finally!", "Not yet.",
        "No, not really.", "Not any more.", "Did it.", "Done!", "Working on it.", "Enjoyed it a lot.", "Broke up.",
        "Appreciated!", "Me neither.",
    ],
)  # fmt: skip
def test_scrap_that_needs_another_sentence_states_nothing(text):
    assert extract_statements(text) == []
    assert extract_statements(f"I went to Rome. {text}") == ["I went to Rome."]


@pytest.mark.parametrize(
    "text",
    [
        "Sold the Vespa", "Moved to Oslo!", "Moved yesterday!", "Pregnant!", "Vegan.", "Divorced.", "Graduated!",
        "Broke my arm.", "Quit smoking.", "We moved!", "Loved the cake.", "Allergic to nuts.",
    ],
)  # fmt: skip
def test_short_sentence_with_content_is_kept(text):
    assert extract_statements(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Good news: the pneumonia is gone", "Bad news: the cancer is back", "Update: the cast came off",
        "Sad news: Rex died last night.",
    ],
)  # fmt: skip
def test_news_after_a_colon_is_kept(text):
    assert extract_statements(text) == [text]


def test_announcement_without_news_states_nothing():
    assert extract_statements("Good news! My scan was clear.") == ["My scan was clear."]


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.NullPointerException\n\tat com.acme.Main.run(Main.java:42)",
        "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()",
        "error[E0382]: borrow of moved value: `x`\n --> src/main.rs:4:20",
        "npm ERR! code ERESOLVE\nnpm ERR! my-app@1.0.0",
        "def f(): return my_name",
        "function add(a, b) { return a + b; }",
        "import numpy as np",
        "for i in range(10):\n    print(i)",
        "git commit -m 'my change'",
        '{"name": "my-app", "version": 1}',
        "const x = my_value;",
        "SELECT * FROM my_table WHERE id = 3;",
        "$ pip install my-package",
        'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\nValueError: my bad',
        "console.log('my name');",
        "class MyThing(Base):\n    pass",
    ],
)
def test_code_commands_and_traces_outside_a_fence_state_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Were I rich, I would travel.",
        "Had I known, I would have stayed.",
        "Provided I get the job, we move to Ulm.",
        "Unless I find a job, I'll move.",
        "Hypothetically, I have a twin.",
        "I'd buy a boat if I won.",
        "Makes sense.",
        "Interesting point!",
        "I get it now.",
        "No idea.",
        "Hmm, interesting.",
    ],
)
def test_further_suppositions_and_reactions_state_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I use Rust at work.",
        "My function names are in snake_case.",
        "My team writes Go.",
        "I commit my work every evening.",
        "My import business is in Hamburg.",
        "I had known Ben for years.",
        "I import coffee from Peru.",
        "We were rich once.",
        "I'm the class teacher of 4b.",
        "My son is in class 3.",
        "I select the wines for our restaurant.",
        "Unless noted, call me Jo.",
        "I have no idea how to cook.",
        "I get migraines now and then.",
        "I work from 9 to 5 for Acme.",
        "For two years I've lived in Ulm.",
        "My package arrives on Friday.",
        "I provided catering for weddings.",
        "I won a boat.",
        "I define requirements at work.",
        "Had my appendix removed last year.",
        "the kids -all three- are allergic to nuts",
        "wife and kids - vegetarian",
        "vegan -since 2010",
        "Interesting fact: I have a twin.",
        "Good one: my new job is great.",
        "for sale: my old bike",
        "docker is what my team uses",
    ],
)
def test_facts_that_share_words_with_code_and_suppositions_are_kept(text):
    assert extract_statements(text) == [text]
