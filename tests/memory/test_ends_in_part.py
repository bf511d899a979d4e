"""A statement ends what it speaks of: no other wish, no other part, and nothing that only shares a word with it."""

import pytest

from meve.memory import RuleUpdateJudge, TrainedUpdateJudge

OTHER_WISHES = [
    ("Always answer in French.", "Keep your answers short from now on."),
    ("Keep your answers short.", "From now on answer in Danish."),
    ("Don't use emojis.", "No tables in your answers from now on."),
    ("Always answer in French.", "Call me Ole from now on."),
    ("My boss is Hedda.", "From now on write formally, Hedda reads along."),
    ("I live in Ghent with Noor.", "From now on answer in English, Noor reads along."),
]
SAME_WISHES = [
    ("Always answer in French.", "From now on answer in Spanish."),
    ("Always answer in French.", "You can answer in English again."),
    ("Call me Nik.", "Call me Nikolai."),
    ("Keep your answers short.", "Longer answers are fine again."),
    ("Don't use emojis.", "Emojis are fine now."),
    ("From now on, reply to me in Portuguese.", "Please stop answering in Portuguese, I want to practise English."),
    ("Always keep your answers under five sentences.", "You can forget the five sentence thing, write as you like."),
]
PARTS = [
    ("I'm applying at Delft and at Ghent.", "Delft turned me down."),
    ("I write mostly Java, some Perl for reports.", "I'm done with Perl."),
    ("My flatmates are Ida and Per.", "Our new flatmate is Jo."),
    ("My supervisor is Annika Lindqvist.", "Annika and I meet weekly from now on since the paper is heating up."),
    ("I live in a flat by the canal with two flatmates.", "My flatmates are Ida and Per."),
    ("On Sundays we open at 9.", "We open on Wednesdays again."),
    ("My name is Hana and I paint.", "I gave up the studio."),
    ("I'm Oskar, a carpenter from Turku.", "I swapped the van for an estate car."),
    ("The cat is scared of thunder.", "The cat is fine again."),
    ("I live in Lund.", "I switched from oak to birch."),
    ("I have to renew my passport.", "My wife renewed her passport."),
    ("Mein Termin beim Hautarzt ist am 19.", "Der Hautarzt sagt, alles ist in Ordnung."),
    ("I have to feed the cat.", "I called the vet about the cat."),
    ("I need to take two tablets.", "I took two tablets today."),
    ("I have to buy insulin.", "I bought insulin."),
]
ENDS = [
    ("The server has 16 GB.", "The server now has 32 GB."),
    ("I train on Mondays.", "I now train on Tuesdays."),
    ("Mia goes to bed at 7.", "Mia now goes to bed at 8."),
    ("The cat is ill.", "The cat is healthy again."),
    ("My editor is vim.", "I switched from vim to Helix."),
    ("I live in Berlin.", "I left there in May."),
    ("I have to renew my passport.", "I renewed my passport."),
    ("I need to book the hotel.", "The hotel is booked."),
]


@pytest.mark.parametrize(("older", "newer"), OTHER_WISHES + PARTS)
@pytest.mark.parametrize("judge", [RuleUpdateJudge(), TrainedUpdateJudge()], ids=["rules", "trained"])
def test_what_it_does_not_speak_of_stays(judge, older, newer):
    assert judge.judge(older, newer).relation == "different"


@pytest.mark.parametrize(("older", "newer"), SAME_WISHES + ENDS)
def test_what_it_speaks_of_ends(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "replaces"
