"""Tells exclamations, which no sentence before or after makes a fact, by rules for English and some German phrases.

Whole clauses only: "Fingers crossed!" is one, "Fingers crossed for my exam on Friday" isn't. What may tell of an
illness or of grief is kept: "I'm dying.", "I can't stop crying."
"""

import re

_LONGEST = 100
"""The most characters of an exclamation."""
_BEGINNING_WORDS = "but and so well oh ah yeah again just honestly seriously man please anyway"
_BEGINNINGS = (*_BEGINNING_WORDS.split(), "at least")
_ENDING_WORDS = """
though tho lol haha hahaha hehe tbh ngl honestly really again today tonight now man dude guys anyway already too please
"""
_ENDINGS = (
    "right now",
    "i guess",
    "i suppose",
    "for sure",
    "as always",
    "as usual",
    "in the end",
    "after all",
    *_ENDING_WORDS.split(),
)
_PHRASES = """
fingers crossed | crossing my fingers | knock on wood | knock wood | touch wood | here goes | here goes nothing
here we go | thank god | thank goodness | thank heavens | thank god for that | thank goodness for weekends
story of my life | never a dull moment | never a dull day | such is life | so is life | that's life | c'est la vie
it is what it is | that's how it goes | that's the way it goes | shit happens | stuff happens | life happens
it happens | could be worse | it could be worse | could have been worse | can't complain | i can't complain
we can't complain | no regrets | zero regrets | lesson learned | lessons learned | time flies | how time flies
same old | same old same old | same old story | better late than never | better safe than sorry | about time
it's about time | go figure | who knew | who would have thought | who would have thought it | you never know
what can i say | what can you do | life goes on | life is good | life is short | life's too short | life is too short
money well spent | time well spent | worth it | so worth it | totally worth it | well worth it | worth every penny
worth every cent | worth a shot | worth a try | my luck | lucky me | silly me | poor me | typical me | poor thing
poor him | poor her | poor you | first world problems | the little things | it's the little things | the small things
all good | all fine | it's all good | all is well | all's well that ends well | no big deal | no biggie | no harm done
no joke | no kidding | no pressure | no wonder | no words | close call | a close call | chaos | bliss | madness
insanity | bummer | nightmare | small world | easier said than done | one step at a time | one day at a time
don't ask | don't judge | don't get me started | don't laugh | don't tell anyone | don't mind me | saying | venting
thinking out loud | rambling | ranting | i'm rambling | i'm ranting | i'm venting | it's late and i'm rambling
enough about me | enough of that | enough said | where was i | long story | long story short | i digress
not gonna lie | not going to lie | trust me | believe me | believe it or not | guess what | i swear | mind blown
i'm hoping so | i know | i wish | you wish | as if | you bet | i tried | i rest my case | i stand corrected
i'm only human | i'm in awe | i'm on a roll | i'm all ears | i'm all thumbs | i'm done | i've had enough
had enough | i'm still not over it | still not over it | beats me | it figures | figures | tell me about it
can't win them all | you can't win them all | lucky escape | no rest for the wicked | best of both worlds
the best of both worlds | i could eat a horse | hold my beer | bring it on | sue me | fight me | watch me | amen
amen to that | hallelujah | so be it | be it | long may it last | cheers to that | sweet dreams | godspeed | anytime
the pleasure's mine | sure thing | so it goes | it goes | progress | karma | magic | perfection | heaven | torture
drama | victory | small victories | the struggle is real | another day | another dollar | win some | lose some
you win some | you lose some | you live and learn | you live | you learn | living the dream | i'm living the dream
back to the grind | back to the daily grind | back to reality | back to the drawing board | back to square one
mission accomplished | job done | case closed | problem solved | crisis averted | challenge accepted
point taken | rant over | drama over | show over | fun over | easy peasy | piece of cake | walk in the park
no pain no gain | so much for that | much for that | never again | long overdue | fun fact | you know how it is
that's the spirit | hang in there | so far so good | far so good | fair's fair | highly recommend | highly recommended
would recommend | ten out of ten | 10 out of 10 | not my proudest moment | not my finest hour | not my best day
what was i thinking | was i wrong | boy | we'll see | let's see | we'll see how it goes | we'll see what happens
it's been a while | been a while | it's been ages | it's been a day | it's been a week | it's been a year | men
men huh | kids huh | women huh | husbands huh | gott sei dank | dem himmel sei dank | zum glück | na ja | naja | egal
endlich | typisch | mist | verdammt | ein mist | so ein mist | toi | auf holz geklopft | ist das leben
so ist das leben | so ist halt das leben | daumen drücken | besser spät als nie | kann nicht klagen
ich kann nicht klagen | was für ein tag | was für ein chaos | so ein chaos | frag nicht | frag lieber nicht
halb so wild | halb so schlimm | ende gut | alles gut | na toll | drück mir die daumen | drückt mir die daumen
drücken sie mir die daumen | wünsch mir glück | wünscht mir glück | bastards | bastard | jerks | jerk | idiots | idiot
morons | arseholes | assholes | damn | damn it | dammit | shit | crap | hell | jesus | christ | ouch | ow | yikes
yay | woohoo | woo hoo | hurrah | hurray | hooray | argh | eek | ew | eww | duh | meh | bah | boo | grr | grrr | sigh
gosh | goodness | bingo | jackpot | oh my god | my god | my goodness | good lord | good grief | holy cow | holy moly
holy shit | for real | boo hoo
"""
_WHOLE = frozenset(phrase.strip() for line in _PHRASES.strip().splitlines() for phrase in line.split(" | "))
_US = "(?:me|us|him|her|them)"
_IT = "(?:it|that|this)"
_DEGREE = "(?:(?:so+|very|really|super|pretty|quite|still|all|totally|absolutely|a bit|a little|kind of|kinda) )*+"
_MOODS = """
annoyed beat bored bummed bushed delighted disappointed ecstatic embarrassed excited frustrated furious hyped knackered
nervous psyched pumped relieved shocked speechless stoked stunned thrilled worried
"""
_VERDICTS = """
adorable awful awkward bonkers breathtaking breath-taking brutal crazy creepy disgusting glorious gross hilarious
horrible iconic incredible insane legendary lovely magical nuts precious priceless ridiculous rude scary shocking
strange stunning terrible typical unbelievable weird wild wow yuck yum yummy
"""
_NOUNS = """
agony audacity blessing bliss bummer chaos disaster drama fail fun heaven irony joy karma legend luck madness magic
misery mistake nerve nightmare perfection pity progress relief shame torture victories victory
"""
_MOOD, _VERDICT, _NOUN = ("|".join(text.split()) for text in (_MOODS, _VERDICTS, _NOUNS))
_OF_MOOD = re.compile(
    r"(?:(?:i|we|everyone|everybody|the (?:kids|boys|girls|children|family|whole family|team))"
    rf"(?: (?:am|is|are|was|were|feel|feels|felt)|'(?:m|s|re)) )?"
    rf"{_DEGREE}(?:{_MOOD}|bummed out|over the moon|wiped out)"
    rf"(?: (?:about|for|by) {_IT})?"
    rf"|(?:it )?feels? {_DEGREE}(?:bad|good|great|weird|strange|amazing|awful|nice|wonderful|surreal|unreal)"
    r"|been (?:needing|wanting|craving|missing|dreading) (?:one|it|that|this|them)"
    r"|i'm (?:so+|totally|literally) (?:dead|done|melting|screaming)|i'm dying (?:here|laughing)"
    r"|i need an? (?:drink|nap|break|hug|minute|moment|breather)"
    r"|my (?:wallet|nerves|sanity|poor (?:back|feet|heart|wallet|head|brain|ears|eyes|nerves|soul))"
    r"|my (?:wallet|brain|nerves) (?:is|are) (?:fried|mush|toast|crying)"
)
_OF_OPINION = re.compile(
    r"(?:the )?(?:best|worst|longest|hardest|happiest|saddest|nicest|proudest|funniest|scariest|craziest|weirdest"
    r"|greatest|easiest|strangest) (?:\d{1,4} )?"
    r"(?:day|night|morning|evening|week|weekend|month|year|time|thing|idea|feeling|money|bucks|dollars|euros|pounds)"
    r" (?:ever|of my life|in ages|in forever|(?:i|we)(?:'ve| have)? ever [a-z]{1,20})"
    r"|(?:getting old(?:er)?|growing up|adulting|waiting|packing|ironing) (?:sucks|stinks|is no fun|is no joke)"
    r"|(?:insurance|paperwork|bureaucracy|parking|packing|traffic|laundry|ironing) is such an?"
    r" (?:headache|pain|hassle|nightmare|mess|drag|bummer|joke|chore)"
    rf"|(?:that's |how )?{_DEGREE}(?:{_VERDICT})"
    r"|(?:always|such|what|the|a|an|rookie|big|huge|classic|epic|total|absolute|pure|sheer|utter|complete)"
    rf"(?: (?:a|an|big|huge|total|absolute|utter|little))? (?:{_NOUN})"
    r"|my kind of [a-z]{1,20}|the (?:joys|wonders) of (?:parenthood|parenting|adulthood|adulting|commuting|modern life)"
    r"|one of those (?:days|weeks|nights|mornings|years|things|moments)"
)
_OF_TALK = re.compile(
    rf"wish {_US} luck|(?:keep |keeping |with )?(?:your |my |our |all )?fingers crossed(?: for {_US})?"
    r"|fingers crossed (?:it|that|this)(?:'s|'ll be|'ll)? (?:cheaper|better|fun|helps?|works?(?: out)?|lasts?"
    r"|goes well)"
    rf"|pray for {_US}|(?:god|lord|heaven) (?:help|save|bless) (?:{_US}|you|all)"
    rf"|bless (?:{_US}|(?:his|her|their) hearts?)"
    rf"|(?:kill|shoot|save|help|forgive|excuse|pinch|spare|count|bear with|don't judge) {_US}"
    rf"|send (?:help|coffee|wine|chocolate|cake|prayers|hugs)|keep {_US} in your thoughts"
    rf"|i (?:really )?(?:don't|do not) (?:really |even )?(?:want to|wanna|feel like) talk(?:ing)? about {_IT}"
    r"|(?:this is |it's )?(?:my )?first time (?:here|(?:using|trying|testing) (?:this|it|you)(?: \w{1,20})?)"
    rf"|you should(?:'ve| have) seen (?:my|his|her|their) faces?|i could(?:'ve| have) (?:screamed|died|strangled {_US})"
    r"|talk about (?:bad|good|great|perfect|terrible|awful) (?:timing|luck|karma|service)"
    r"|don't tell my (?:wife|husband|boss|mom|mum)"
    r"|(?:i |we )?(?:totally |completely |really |so |do |can |couldn't )*+"
    r"(?:agree(?: more)?|relate|(?:hear|feel) (?:you|ya))"
    rf"|(?:i |we )?(?:totally |completely |really |so |do )*+(?:get|remember) {_IT}"
    rf"|(?:i'm |we're )?(?:really |so |much )*+look(?:ing)? forward to {_IT}"
    r"|(?:i |we )?(?:definitely|totally|certainly|sure) (?:will|am|do|did|would|should)"
    r"|(?:i |we )?(?:wouldn't|couldn't|can't) "
    rf"(?:have {_IT} any other way|be (?:happier|prouder)|ask for (?:more|better)|care less"
    rf"|stop (?:smiling|laughing|grinning)|believe (?:{_IT}|my (?:eyes|luck)))"
    r"|could be (?:fun|nice|interesting|great)"
)


def is_exclamation(clause: str) -> bool:
    """Return whether a clause, without its punctuation, is an exclamation, a saying, a wish for luck or a mood.

    >>> [is_exclamation(each) for each in ("Fingers crossed", "Never a dull moment", "Best man is my cousin Ravi")]
    [True, True, False]
    """
    if len(clause) > _LONGEST:
        return False
    whole = " ".join(clause.lower().split())
    end = _without_end(whole)
    return any(map(_is_one, {whole, end, _without_beginning(whole), _without_beginning(end)}))


def _is_one(said: str) -> bool:
    return said in _WHOLE or bool(_OF_MOOD.fullmatch(said) or _OF_OPINION.fullmatch(said) or _OF_TALK.fullmatch(said))


def _without_beginning(said: str) -> str:
    """Return a clause without words such as "but" before it."""
    for _ in range(3):
        said = next((said.removeprefix(f"{word} ") for word in _BEGINNINGS if said.startswith(f"{word} ")), said)
    return said


def _without_end(said: str) -> str:
    """Return a clause without words such as "though" after it."""
    for _ in range(3):
        said = next((said.removesuffix(f" {word}") for word in _ENDINGS if said.endswith(f" {word}")), said)
    return said
