"""Wishes and questions as people say them, written before the rules were widened.

Of each list, the entries at even places served for widening the rules, and those at odd places for measuring them.
"""

from datetime import UTC, datetime

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
"""A Wednesday, at which the questions are asked."""


def _lines(text):
    return [line.strip() for line in text.strip().splitlines()]


WISHES = _lines("""
    Please keep it short from now on.
    I'd like you to answer in French from now on.
    Don't use emojis.
    Stop apologising all the time.
    Can you always give me the metric units?
    Just call me Ben.
    When I ask for code, use Python.
    No bullet points, please.
    I prefer short answers.
    From here on, write British English.
    You can skip the introductions.
    Talk to me like I'm five.
    Be more concise.
    Please don't be so formal with me.
    Whenever you quote a paper, add the link.
    I want you to use the informal "du" with me.
    Going forward, give prices in euros.
    Explain things step by step, please.
    Use simple words.
    Could you address me as Dr. Patel?
    I don't want any small talk in your answers.
    Every time I send a recipe, convert it to grams.
    Make sure you mention the sources.
    Remember to always use 24-hour times.
    Never give me medical advice.
    Avoid jargon when you explain something.
    If you're not sure, say so.
    Only suggest vegetarian recipes.
    Your answers are too long, keep them under 100 words.
    Respond in Spanish, unless I write in English.
    Don't call me mate.
    I'd rather you didn't use abbreviations.
    Please stop using so many exclamation marks.
    End every reply with a question.
    Do not sugar-coat things.
    Let's speak Italian from today on.
    It would be great if you could always show the calculation.
    Use tables whenever you compare things.
    My pronouns are they/them, please use them.
    Treat me as a beginner.
    From now on you're my tough coach.
    In future, ask before you make assumptions.
    Give me the answer first, then the explanation.
    Keep the tone friendly.
    Format dates as day.month.year.
    I need you to be brief.
    Always double-check numbers before you tell me.
    Answer me in one sentence only.
    Please refer to my company as Acme, not ACME Ltd.
    No need to greet me every time.
    I'd prefer it if you used Celsius.
    Begin each answer with the key point.
    Speak plainly, no marketing language.
    When translating, keep my line breaks.
    Try to use examples from football.
    Don't ever mention my ex.
    You should always ask me before booking anything.
    Write in lower case only.
    Can you please stop saying "certainly"?
    Please answer with yes or no first.
""")

NOT_WISHES = _lines("""
    Never mind the noise.
    I never eat breakfast.
    I always take the bus.
    Call me back tomorrow.
    Can you write an email to Tom?
    Please explain quantum computing.
    Don't worry about it.
    Give me a recipe for soup.
    I prefer tea to coffee.
    My boss wants short reports.
    Keep calm and carry on.
    Write a poem about spring.
    I don't want to move house.
    Stop the music at ten.
    From now on I work from home.
    I'd like a coffee.
    Use the blue pan for the sauce.
    Could you translate this letter?
    Only my sister knows.
    When I ask my boss for leave, he says no.
    Make sure the door is locked.
    No sugar for me.
    Translate this into French.
    Answer this question: what is rust?
    I want you to summarise this article.
    Keep the receipt.
    Please add milk to my shopping list.
    We always speak French at home.
    My doctor says I should avoid salt.
    Never been to Rome.
    In future I want to live by the sea.
    Remember to buy bread.
    I need you to check this code.
    Show me the last invoice.
    Don't tell Anna about the party.
    Let's talk about my holiday.
    Talk to you later.
    I'd rather stay at home.
    Explain the last step again.
    Give this text a title.
    Say hello to your mother.
    I call my dog Ben.
    You can call me at noon.
    Call me when you arrive.
    Start the report with a summary.
    Mention the deadline in the mail to Tom.
    Avoid the A2 today.
    Put the milk in the fridge.
    Every time I run, my knee hurts.
    Whenever it rains, the cellar floods.
    I always answer my mail in the evening.
    My teacher never gives us homework.
    Please be quiet.
    Be careful on the ice.
    If you're hungry, there is soup.
    Do not disturb.
    Make it shorter.
    Try the new bakery.
    Use this picture.
    Speak to Anna about the rent.
""")

TIMES = [
    tuple(part.strip() for part in line.split("|"))
    for line in _lines("""
    What did I tell you three weeks ago about my knee? | 2026-04-29 | 2026-05-19
    What did we discuss earlier this week? | 2026-05-18 | 2026-05-16
    What did I say last Monday? | 2026-05-18 | 2026-05-14
    Which book did I mention a couple of days ago? | 2026-05-18 | 2026-05-13
    What did I tell you this morning? | 2026-05-20 | 2026-05-18
    Who did I meet a few weeks ago? | 2026-04-29 | 2026-05-19
    What did I plan two weekends ago? | 2026-05-09 | 2026-05-18
    What did I say in early May? | 2026-05-04 | 2026-05-19
    Where did I go last summer? | 2025-07-10 | 2026-01-10
    What did I tell you at the start of the month? | 2026-05-02 | 2026-05-19
    What was I working on last spring? | 2025-04-10 | 2025-10-10
    What did I eat the night before last? | 2026-05-18 | 2026-05-14
    What did I say on the 3rd of April? | 2026-04-03 | 2026-05-03
    What did I mention in the last few days? | 2026-05-19 | 2026-05-09
    What was my weight back in January? | 2026-01-10 | 2026-05-10
    What did I tell you over the weekend? | 2026-05-16 | 2026-05-19
    What did I say the week before last? | 2026-05-06 | 2026-05-18
    What did I tell you half a year ago? | 2025-11-20 | 2026-05-10
    What have I told you since Easter? | 2026-04-20 | 2026-03-20
    What did I want to buy in the past two weeks? | 2026-05-10 | 2026-04-20
    What did I say about the trip on Tuesday evening? | 2026-05-19 | 2026-05-17
    How did I feel a month or so ago? | 2026-04-20 | 2026-05-19
    What did I tell you around Christmas? | 2025-12-25 | 2026-03-01
    What did I ask you an hour ago? | 2026-05-20 | 2026-05-18
    What did I mention at the weekend? | 2026-05-16 | 2026-05-19
    What did I say in mid-April? | 2026-04-15 | 2026-04-29
    Which film did I talk about last Friday night? | 2026-05-15 | 2026-05-18
    What did we agree on in the first week of May? | 2026-05-04 | 2026-05-15
    What did I tell you in 2024? | 2024-06-10 | 2026-01-10
    What did I say the day before yesterday? | 2026-05-18 | 2026-05-16
    What did I promise yesterday evening? | 2026-05-19 | 2026-05-17
    What was I worried about two years ago? | 2024-06-10 | 2026-01-10
    What did I say at the end of April? | 2026-04-28 | 2026-04-10
    Which restaurant did I mention in the last month? | 2026-05-01 | 2026-02-10
    What did I tell you late last year? | 2025-11-20 | 2025-03-10
    What did we talk about on Sunday? | 2026-05-17 | 2026-05-19
    What did I report over the past week? | 2026-05-15 | 2026-05-01
    What did I say about work last autumn? | 2025-10-10 | 2026-03-10
    What did I tell you ten minutes ago? | 2026-05-20 | 2026-05-18
    What did I tell you on May 4? | 2026-05-04 | 2026-05-08
    Where was I living last year at this time? | 2025-05-20 | 2026-02-10
    What did I tell you between Monday and Wednesday? | 2026-05-19 | 2026-05-15
    What did I say about the garden in the spring? | 2026-04-10 | 2025-12-10
    What did I mention in April of last year? | 2025-04-10 | 2026-04-10
    What did I do the previous week? | 2026-05-13 | 2026-05-19
    What did I say in the last 10 days? | 2026-05-12 | 2026-05-01
    What did I tell you several months ago? | 2026-01-20 | 2026-05-19
    What was my plan the previous month? | 2026-04-10 | 2026-05-10
    What did I tell you this week? | 2026-05-18 | 2026-05-14
    What did I say on 12/04/2026? | 2026-04-12 | 2026-05-12
    What did I tell you earlier today? | 2026-05-20 | 2026-05-18
    Which doctor did I see in March 2025? | 2025-03-10 | 2026-03-10
    What was I reading in the winter? | 2026-01-10 | 2026-05-01
    What did I tell you about a fortnight ago? | 2026-05-06 | 2026-05-19
    What did I tell you on the first of May? | 2026-05-01 | 2026-05-05
    What did I say last quarter? | 2026-02-10 | 2026-05-10
    What did I decide a week ago on Tuesday? | 2026-05-12 | 2026-05-19
    What did I say Monday last week? | 2026-05-11 | 2026-05-18
    What did I mention a day or two ago? | 2026-05-18 | 2026-05-14
    What did I tell you the past weekend? | 2026-05-16 | 2026-05-19
    """)
]
"""Questions that name a past time, a day that is meant, and one that isn't."""

NOT_TIMES = _lines("""
    When is my appointment in May?
    What is on Tuesday?
    Who lives on the second floor?
    What do I do in summer?
    May I bring a friend?
    How long does the last bus take?
    What happened in the last chapter?
    Which bakery opens early?
    When do we meet this weekend?
    Do I work at the weekend?
    What is due at the end of the month?
    How many weeks of holiday do I have?
    What do I drink in the morning?
    Where do we go next summer?
    When does the spring term start?
    What is the past tense of go?
    Which meeting is in the afternoon?
    When is Christmas dinner?
    Is the shop open over Easter?
    How often did it rain every week?
    What is my last name?
    Who came last?
    What is a quarter of ten?
    Which minutes did I ask for?
    When is my birthday in March?
    What are the first steps?
    Which winter coat do I like?
    Where is the weekend house?
    What's planned for Monday and Wednesday?
    What is my monthly rent?
""")
