"""Tells exclamations, which no sentence before or after makes a fact, by rules for English and some German phrases.

Whole clauses only: "Fingers crossed!" is one, "Fingers crossed for my exam on Friday" isn't.
"""

import re

_BEFORE = r"(?:(?:but|and|so|well|oh|ah|yeah|again|just|honestly|seriously|man|please|anyway|at least)\s+){0,3}"
_AFTER = (
    r"(?:\s+(?:though|tho|lol|haha+|hehe|tbh|ngl|honestly|really|again|today|tonight|now|right now|man|dude|guys"
    r"|i guess|i suppose|for sure|anyway|already|too|as always|as usual|in the end|after all))*+"
)
_US = r"(?:me|us|him|her|them)"
_IT = r"(?:it|that|this)"
_WISHES = rf"""
wish {_US} luck
(?:i'm |we're )?(?:keep(?:ing)? |with )?(?:(?:your|my|our|all) )?fingers crossed(?: for {_US})?
fingers crossed (?:it|it's|it'll|that|this|they|they're|they'll|he|he's|he'll|she|she's|she'll) [a-z' ]{{1,40}}
(?:knock|touch) (?:on )?wood
pray for {_US}
say a (?:little )?prayer(?: for {_US})?
(?:god|lord|heaven|heavens) (?:help|save|bless) (?:{_US}|you|all)
here (?:goes(?: nothing)?|we go|it comes)
(?:thank|thanks) (?:god|goodness|heavens?)(?: for (?:that|this|small mercies|(?:the )?weekends?|coffee|naps))?
"""
_SAYINGS = r"""
story of my life
never a dull (?:moment|day)
(?:such is|so is|that's|that is|c'est) (?:life|la vie)
it is what it is
that's (?:how it goes|the way it goes|how life goes|just how it is)
(?:shit|stuff|life|it) happens
(?:it )?could (?:be|have been|always be) (?:worse|better)
(?:i |we )?(?:can't|cannot) complain
(?:no|zero) regrets
lessons? learned
(?:how )?time flies
same old(?: same old| story)?
better (?:late than never|safe than sorry)
about time
go figure
who knew
who would have thought(?: it)?
you never know
what can (?:i|you) (?:say|do)
life (?:goes on|is good|is short)
(?:money|time) well spent
(?:totally |so |well )?worth (?:it|every (?:penny|cent|minute))
(?:just )?my luck
(?:lucky|silly|poor|typical) (?:me|you|us|him|her|them|thing)
first world problems
(?:it's )?the (?:little|small|simple) things(?: in life)?
all(?:'s| is)? (?:good|fine|well)(?: that ends well)?
no (?:big deal|biggie|harm done|joke|kidding|pressure|wonder|words)
(?:a )?close call
(?:(?:total|utter|complete|absolute|pure|sheer) )?(?:chaos|bliss|madness|insanity|carnage|bummer|nightmare)
small world
easier said than done
(?:one|two) (?:step|day) at a time
"""
_OF_THE_TALK = rf"""
don't (?:ask|judge(?: {_US})?|get me started|laugh(?: at me)?|tell anyone|mind me|@ me)
(?:i'm )?(?:just )?(?:saying|venting|thinking out loud|rambling|ranting|babbling|blabbering)
(?:it's late and )?i'm (?:just |only )?(?:rambling|ranting|venting|babbling)
(?:but )?enough (?:about me|of that|said)
where was i
long story(?: short)?
i digress
i (?:really |just )?(?:don't|do not) (?:really |even )?(?:want to|wanna|feel like) talk(?:ing)? about {_IT}
(?:(?:this is |it's )?my )?first time (?:here|(?:using|trying|testing|on|with) (?:{_IT}|you|one of these)(?: \w+)?)
(?:(?:this is |it's )?my )?first time (?:using|trying|testing|on|with) an? (?:bot|ai|chatbot|assistant)
you should(?:'ve| have) seen (?:my|his|her|their) faces?
i could(?:'ve| have) (?:screamed|cried|died|kicked myself|strangled {_US}|hugged {_US})
not (?:gonna|going to) lie
(?:trust|believe) me
believe it or not
guess what
i swear
mind blown
talk about (?:an? )?[a-z-]{{1,20}}(?: [a-z-]{{1,20}})?
"""
_DEGREE = (
    r"(?:(?:so+|very|really|super|pretty|quite|still|all|totally|absolutely|completely|a (?:bit|little)"
    r"|kind of|kinda) )*+"
)
_CANNOT = r"(?:i |we )?(?:wouldn't|couldn't|can't|cannot)"
_ANY = (
    r"(?:always|such|what|the|a|an|my|our|rookie|big|huge|classic|epic|total|absolute|pure|sheer|utter|little|small"
    r"|complete)(?: (?:a|an|the|rookie|big|huge|classic|epic|total|absolute|pure|sheer|utter|little|small))?"
)
_WORDS_OF_VERDICTS = """
adorable awful awkward bonkers breathtaking breath-taking brutal crazy creepy disgusting glorious gross hilarious
horrible iconic incredible insane legendary lovely magical nuts precious priceless ridiculous rude scary shocking
strange stunning terrible typical unbelievable weird wild wow yuck yum yummy
"""
_VERDICT = "|".join(_WORDS_OF_VERDICTS.split())
_ANSWERS = rf"""
(?:i |we )?(?:(?:totally|completely|really|can|so|do|couldn't) )*(?:agree(?: more)?|(?:hear|feel) (?:you|ya)|relate)
(?:i |we )?(?:(?:totally|completely|really|so|do) )*(?:get|feel|remember) {_IT}
(?:i'm |we're )?(?:(?:really|so|much) )*look(?:ing)? forward to {_IT}
(?:i'm )?(?:(?:really|just) )*hoping so
(?:i |we )?(?:definitely|totally|certainly|sure) (?:will|am|do|did|would|should)
{_CANNOT} (?:have {_IT} any other way|be (?:happier|prouder|more [a-z]{{1,20}})|ask for (?:more|better))
{_CANNOT} (?:care less|have said it better|stop (?:smiling|laughing|grinning))
{_CANNOT} believe (?:it|my (?:eyes|ears|luck))
i know|(?:i |you )wish|as if|you bet|i tried|i rest my case
i stand corrected|i'm (?:only human|in awe|on a roll|all ears|all thumbs)
i'm (?:so |totally |literally )?(?:dead|screaming|melting|dying (?:here|inside|laughing))
i'm (?:so+|totally) done|(?:i've )?had (?:it|enough)|(?:i'm )?still not over {_IT}
i need an? (?:[a-z]{{1,20}} )?(?:drink|nap|break|hug|minute|moment|breather|lie-down)
(?:my|our) (?:poor |little )?(?:back|feet|heart|wallet|head|brain|ears|eyes|nerves|soul|sanity)
(?:my|our) (?:wallet|head|brain|nerves) (?:is|are) (?:fried|mush|toast|crying)
(?:kill|shoot|save|help|forgive|excuse|pinch|spare|count|bear with) {_US}(?: please)?
(?:it )?(?:beats me|figures)|tell me about it|(?:you )?can't win (?:them|'em) all|worth a (?:shot|try)
no rest for the wicked|(?:the )?best of both worlds|lucky escape|i could eat a horse|keep {_US} in your thoughts
life(?:'s| is) too short
send (?:help|coffee|wine|chocolate|cake|prayers|hugs)|hold my beer|bring it on|sue me|fight me|watch me
(?:god |heaven )?bless (?:him|her|them|us|you|(?:his|her|their) hearts?)|amen(?: to that)?|hallelujah|so be it
long may it last|cheers to that|sweet dreams|godspeed|anytime|(?:the )?pleasure's mine|sure thing|so it goes
"""
_FRAGMENTS = rf"""
{_ANY} (?:mistake|fail|irony|nerve|audacity|chaos|disaster|nightmare|madness|drama|bliss|torture|agony|misery|relief)
{_ANY} (?:shame|pity|bummer|karma|legend|victory|victories|luck|fun|blessing|joy|progress|magic|perfection|heaven)
(?:progress|karma|magic|perfection|heaven|torture|drama|victory)
my kind of [a-z]{{1,20}}
the (?:joys|perks|struggles|pains|wonders) of [a-z-]{{1,20}}(?: [a-z-]{{1,20}})?
(?:the )?struggle is real
(?:(?:just|another|it's|it was|i had) )*one of those (?:days|weeks|nights|mornings|years|things|moments)
(?:an|just an|yet an)?other day
(?:you )?(?:win|lose) some|(?:you )?live and learn
(?:i'm )?living the (?:dream|life|high life)
(?:i'm )?back to (?:the (?:daily )?grind|the drawing board|square one|reality|normal)
(?:mission|job|case|problem|crisis|challenge|point|message) (?:accomplished|done|closed|solved|averted|accepted|taken)
(?:rant|drama|panic|show|fun) over
easy peasy|piece of cake|walk in the park|no pain no gain|so much for {_IT}|never again|long overdue|fun fact
you know how it is|that's the spirit|hang in there|so far so good|fair's fair|highly recommend(?:ed)?|would recommend
(?:ten|10) out of (?:ten|10)|not my (?:proudest|finest|best) (?:moment|hour|day)|what(?:ever)? was i thinking
don't tell my (?:wife|husband|boss|mom|mum|doctor|dentist)|(?:(?:boy|man|wow) )?was i wrong|boy
(?:we'll|let's) see(?: (?:how (?:it|that) goes|what happens))?|could be (?:fun|nice|interesting|great)
(?:it's|it was|it has) been (?:a|quite a|some|one hell of a) (?:day|week|month|year|night|ride|journey)
(?:that's |how )?{_DEGREE}(?:{_VERDICT})
(?:men|kids|women|teenagers|bosses|husbands|wives)(?: huh)?
"""
_CURSES = r"""
(?:you |those |what )?(?:bastards?|jerks?|idiots?|morons?|arseholes?|assholes?|thieves)
(?:god)?damn(?: it)?|dammit|shit|crap|hell|jesus|christ|ouch|ow+|yikes|yay|woo+ ?hoo+|hurra[hy]|hooray|argh+
eek|ew+|duh|meh|bah|boo|grr+|sigh|gosh|goodness|bingo|jackpot
oh my (?:god|goodness|gosh)|good (?:lord|grief)|holy (?:cow|moly|shit)|for real
"""
_WHO = r"(?:i|we|he|she|they|every(?:one|body)|the (?:kids|boys|girls|children|family|whole family|team|two of us))"
_ARE = r"(?: (?:am|is|are|was|were|feel|feels|felt)|'(?:m|s|re))"
_MOODS = """
annoyed beat bored bummed bushed delighted devastated disappointed ecstatic embarrassed excited frustrated furious
gutted heartbroken hyped jealous knackered nervous psyched pumped relieved shocked speechless stoked
stunned thrilled worried
"""
_MOOD = "|".join([*_MOODS.split(), "bummed out", "over the moon", "wiped out"])
_FEELINGS = rf"""
(?:{_WHO}{_ARE} )?{_DEGREE}(?:{_MOOD})(?: (?:about|for|by) (?:{_IT}|{_US}))?
(?:it )?feels? {_DEGREE}(?:bad|good|great|weird|strange|amazing|awful|nice|wonderful|surreal|unreal)
(?:such an?|what an?) {_DEGREE}[a-z-]{{1,20}}(?: [a-z-]{{1,20}})?
been (?:needing|wanting|craving|missing|dreading) (?:one|{_IT}|them)
(?:it's )?been (?:a while|ages|forever|a day|a week)
"""
_BEST = (
    r"(?:best|worst|most [a-z]{1,20}"
    r"|(?:long|hard|happi|sadd|cool|nic|proud|funni|scari|crazi|weird|great|easi|dumb|strang)est)"
)
_EVER = r"(?:ever|of my life|in (?:ages|forever)|(?:i|we)(?:'ve| have)? ever [a-z]{1,20})"
_VERDICTS = rf"""
(?:the )?{_BEST} (?:[\w'-]{{1,20}} ){{1,3}}{_EVER}
[a-z]{{2,20}}ing(?: [a-z'-]{{1,20}}){{0,2}} (?:sucks|stinks|is no fun|is no joke)
(?:[a-z-]{{1,20}} ){{1,2}}(?:is|are) such an? (?:headache|pain|hassle|nightmare|mess|drag|bummer|joke|chore|relief)
"""
_GERMAN = r"""
(?:drück|drückt|drücken sie) (?:mir|uns) (?:mal )?die daumen
daumen drücken
wünsch(?:t)? (?:mir|uns) (?:viel )?glück
(?:gott|dem himmel) sei dank
zum glück|na ja|naja|egal|endlich|typisch|mist|verdammt|(?:so )?ein mist|toi|auf holz geklopft|dreimal auf holz geklopft
(?:so )?ist (?:das|halt das) leben
besser spät als nie
(?:ich )?kann nicht klagen
(?:was für |so )?ein (?:tag|chaos|theater|glück|pech|stress)
frag (?:lieber |bloß )?nicht
halb so (?:wild|schlimm)
ende gut alles gut
die kleinen dinge
"""
_PHRASES = "|".join(
    line.replace(" ", r"\s+")
    for group in (_WISHES, _SAYINGS, _OF_THE_TALK, _ANSWERS, _FRAGMENTS, _CURSES, _FEELINGS, _VERDICTS, _GERMAN)
    for line in group.strip().splitlines()
)
_EXCLAMATION = re.compile(rf"{_BEFORE}(?:{_PHRASES}){_AFTER}", re.IGNORECASE)


def is_exclamation(clause: str) -> bool:
    """Return whether a clause, without its punctuation, is an exclamation, a saying, a wish for luck or a mood.

    >>> [is_exclamation(each) for each in ("Fingers crossed", "Never a dull moment", "Best man is my cousin Ravi")]
    [True, True, False]
    """
    return _EXCLAMATION.fullmatch(clause) is not None
