"""Finds by patterns what an English question is after. Each pattern takes time linear in the question's length."""

import re
from dataclasses import dataclass

from meve.routing._base_forms import is_past
from meve.routing._plan import Intent
from meve.routing._small_talk import OPENER, PRAISE, SMALL_TALK

_MOST = 2_000
"""The characters of a question that are read: its beginning and its end."""
_NOT_PLURAL = r"(?!\w*(?:ss|us|is)\b)"
_DOES = r"(?:has|have|had|did|does|do|are|were|can|am|is|was)"
_SPAN = r"(?:seconds?|minutes?|hours?|days?|weeks?|weekends?|months?|years?)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNTED = "an?|one|two|three|four|five|six|seven|eight|ten|few|several|couple of"
_SELF = r"(?:i|me|my|mine|myself|we|us|our|ours)"
_ABOUT_SELF = re.compile(rf"\b{_SELF}\b")
_HOW_TO = re.compile(
    r"^(?:(?:can|could|would|will) you (?:please )?(?:tell|show|teach|explain to) me )?"
    r"(?:how (?:do|can|should|would|could) (?:i|we)\b)?"
)
_OWNS = re.compile(r"\b(?:i|my|mine|our|ours|we)\b")
_ALL_OF_SELF = (
    r"(?:me|us|myself|my (?:life|person|background|situation|profile))\b"
    r"(?=\W*(?:$|so\b|from\b|this\b|in\b|and my\b|[:,]))"
)
_RELATION = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[ée]e?|mother|mom|mum|father|dad|parents?|sisters?"
    r"|brothers?|siblings?|sons?|daughters?|kids?|child(?:ren)?|boss|manager|doctor|dentist|vet|landlord|pets?|dogs?"
    r"|cats?|neighbou?rs?|roommates?|flatmates?|best friend)"
)
_ATTRIBUTE = (
    r"(?:(?:full |first |last |middle |maiden |user|nick)?names?|age|birthday|date of birth|birthplace|hometown|address"
    r"|phone(?: number)?|e-?mail(?: address)?|job(?: title)?|occupation|profession|employer|company|nationality"
    r"|native language|mother tongue|religion|marital status|relationship status|identity|gender|pronouns|height|weight"
    r"|blood type|shoe size|zodiac sign|star sign|allerg(?:y|ies)|diet|time ?zone|major|degree|school|hobb(?:y|ies))"
)
_OWN = r"(?:i|my|mine|myself|we|our|ours|us)"
_ADVICE_NOUN = r"(?:advice|suggestions?|recommendations?|opinion|view|answer|idea|first|last|previous|earlier)"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SEASON = r"(?:spring|summer|autumn|fall|winter|holidays?|vacation|christmas|easter)"
_TIME = (
    rf"(?:{_SPAN}|{_SEASON}|{_MONTH}|{_WEEKDAY}s?|today|yesterday|tonight|lately|recently|these days|so far|morning"
    r"|afternoon|evening|night|20\d\d)"
)
_AT_END = rf"(?:[\w'-]+ ){{0,6}}{_TIME}\W*$"
"""A time at the end of a question."""
_LONG_PERIOD = (
    rf"\b(?:(?:last|this|past|previous) (?:\w+ )?(?:weeks?|weekends?|months?|years?|quarter|{_SEASON})|lately|recently"
    rf"|(?:in|since|during|over) (?:{_MONTH}|20\d\d|the (?:last|past) \w+ \w+|(?:the )?{_SEASON}))\W*$"
)
_SOMEBODY = r"(?:i|we|you|he|she|they|(?:my|our|his|her) \w+|[^\W\d_]+(?: and (?:i|[^\W\d_]+))?)"
_DONE = (
    r"(?:all )?(?:do|done|doing|been (?:up to|doing)|up to|get(?:ting)? up to|get(?:ting)? done|gotten done|accomplish"
    r"(?:ed)?|achieved?|experienced?|see|seen|visit(?:ed)?|explored?)"
)
_PERSON = r"(?:i|me|my|we|us|our|you|your|he|she|they|his|her|their|it|its|the|this|that|these|those)\b"
_MORE = (
    r"(?:more|less|fewer|better|worse|cheaper|dearer|faster|slower|older|younger|bigger|larger|smaller|longer|shorter"
    r"|taller|higher|lower|heavier|lighter|warmer|colder|closer|further|farther|earlier|later)"
)
_CHANGED = (
    r"(?:los[et]|gain(?:ed)?|gr[eo]wn?|risen?|fall(?:en)?|drop(?:ped)?|shrunk|increased?|decreased?|improved?|changed?"
    r"|gone (?:up|down)|go (?:up|down))"
)
_CHANGE = rf"\bhow much (?:\w+ ){{0,3}}(?:have|has|did) .{{0,60}}\b{_CHANGED}\b.{{0,40}}\b(?:between|since|from)\b"
_HABIT = r"(?:like|love|hate|dislike|enjoy|prefer|drink|eat|avoid|collect|speak|believe in|want|need|usually \w+)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a question is after, by a rule."""

    intent: Intent | None
    """None if no rule tells."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Rule:
    intent: Intent
    reason: str
    pattern: re.Pattern[str]


def _rule(intent: Intent, reason: str, *patterns: str) -> _Rule:
    return _Rule(intent, reason, re.compile("|".join(patterns)))


_RULES = (
    _rule(
        "chat", "it is small talk",
        SMALL_TALK,
        rf"^(?:{OPENER}\b(?: \w+){{0,2}})?[ ,.!]*(?:how are you|how's it going|what's up"
        r"|how do you do|who are you|what can you do"
        r"|are you (?:there|ok|real|human|an? (?:ai|bot|robot|person)))\b(?! with\b)(?: \w+){0,3}[ ?!.]*$",
    ),
    _rule(
        "chat", "it is about the assistant or says how the user takes an answer",
        rf"^(?!.*\b{_OWN}\b)(?:(?:what(?:'s| is)|what are) your (?!{_ADVICE_NOUN})\w+"
        r"|(?:do|can|will) you (?:ever |really |actually )?(?:sleep|eat|dream|feel|think|exist|learn|breathe|age)"
        r"|who (?:made|built|created|trained|programmed) you|are you (?:an? )?\w+)(?:,? \w+){0,3}[ ?!.]*$",
        rf"^(?!.*\b(?:{_OWN}|\d+)\b)(?:(?:hm+|oh|ah|aha|ha(?:ha)+|ugh|oops|phew|well|morning|evening|afternoon|cheers"
        rf"|{PRAISE}|fair enough|makes sense|never mind then)\b|(?:that|this|it)(?:'s| is| was| made|'ll| sounds?"
        rf"| helps?)\b.*\b(?:{PRAISE}|laugh|smile|enough|all|kind|sense)\b|you(?:'re| are) |talk to you|see you"
        r"|nice to meet|i (?:see|understand|appreciate|agree)\b|good to (?:hear|know))[^?]{0,40}$",
    ),
    _rule(
        "task", "it is a command that other tools carry out",
        rf"^(?!.*\b{_OWN}\b)(?:please |can you |could you )*"
        r"(?:(?:set|start|cancel) (?:a|an|the) (?:timer|alarm|reminder)"
        r"|remind me (?:to|in|at|on)\b|(?:turn|switch|dim|play|stop|pause|resume|mute|unmute|google|open|close)\b"
        r"|search (?:for|online|the)\b|(?:call|order|book) (?:a|an|me a) (?:taxi|cab|car)\b)[^?]*$",
        rf"^(?!.*\b{_OWN}\b)what(?:'s| is) the (?:time|date|day)(?: \w+){{0,2}}[ ?]*$", r"^what time is it\b",
        rf"^(?!.*\b{_OWN}\b)(?:what(?:'s| is|'ll| will) (?:the )?(?:weather|forecast)\b"
        r"|will it (?:rain|snow|be (?:sunny|hot|cold|windy))\b)",
    ),
    _rule(
        "overview", "it asks for all that is known of the user",
        rf"\b(?:know|remember|recall|learn(?:ed|t)?|store|save|collect|h[oe]ld|have|got|ke(?:ep|pt)|noted?)\b.{{0,30}}"
        rf"\b(?:about|on) {_ALL_OF_SELF}", rf"\bknow of {_ALL_OF_SELF}",
        rf"\b(?:everything|all|facts?|info(?:rmation)?|data|details?|highlights|overview|portrait|picture|sketch"
        rf"|description|profile|bio(?:graphy)?|introduction|form|things)\b.{{0,20}}"
        rf"\b(?:about|on|of|for) {_ALL_OF_SELF}",
        r"\bwho (?:am i|i am|do you think i am)\b",
        rf"^(?:please )?(?:tell|inform)\b.{{0,30}}\babout {_ALL_OF_SELF}",
        r"\b(?:can|could|would) you (?:say|tell|write) about me\b",
        r"^(?!.*\b(?:say|says|said|thinks?|thought|tells?|told|wr[io]te|feels?|like)\b)(?:what|which|how much)\b.{0,60}"
        r"\babout me\W*$", r"\b(?:gist|essence|story) of my life\b",
        r"\b(?:describe|characteri[sz]e|portray|introduce|present) (?:me|myself)\b(?! to (?!my\b|an?\b|the\b|some))",
        r"\b(?:describe|characteri[sz]e|summari[sz]e|sum up|sketch) (?:me|my (?:life|person\w*|profile|preferences"
        r"|situation))\b(?=\W*(?:$|now\b|at\b|in\b))",
        r"\bdo you (?:\w+ )?(?:know|remember|recognise) me\b", r"\beverything you (?:know|remember|have|stored)\W*$",
        r"\b(?:in|of) my (?:memory|profile)\W*$", r"^(?:show|give|print|read)\b.{0,30}\bmy (?:profile|memory)\b",
        r"\bwhat (?:kind|sort|type) of (?:person|life)\b.{0,20}\b(?:am i|i am|i lead|i live)\b",
        r"\b(?:most important|main|central) (?:things|facts|people) in my life\b", r"^(?:what is|what's) my story\W*$",
        r"^(?:what (?:are|were)|(?:please )?(?:list|name|tell me)) my (?:main )?(?:preferences|likes|dislikes|interests"
        r"|hobbies|goals)(?: and (?:my )?\w+)?\W*$",
    ),
    _rule(
        "summary", "it asks for all that happened at a time or place",
        rf"^(?:\w+ )?(?:what|who|where)(?: all)?(?:'d| did|'ve| have| has| was| were) {_SOMEBODY} {_DONE} {_AT_END}",
        r"^(?:\w+ )?what(?: all)?(?:'d| did| have) (?:i|we) (?:do|done|see|seen|visit(?:ed)?|explored?|get up to)"
        r" (?:in|at|on|during|while|throughout|around|together)\b",
        rf"\b(?:what|everything|anything)(?: (?:has|have|had))?(?: \w+)? (?:happened|happen|(?:been )?going on"
        rf"|went (?:on|wrong|well))(?! to\b) {_AT_END}",
        rf"^how (?:was|were|did|has|have) (?:(?:my|our|the) (?:\w+ )?|(?:last|this) ){_TIME}(?: go| gone| been"
        rf"| going)?\W*$",
        rf"\b(?:what|everything|all(?: that)?) (?:i|we) (?:did|have done|got done) {_AT_END}",
        rf"^what (?:am i|are we) (?:doing|up to) {_AT_END}", r"\b(?:highlights|best moments) of\b",
    ),
    _rule(
        "summary", "it asks for a summary",
        r"\b(?:summari[sz]e|recap|sum up|catch me up|bring me up to (?:date|speed))\b",
        r"\b(?:summary|overview|recap|timeline|history) of\b",
        r"\bwhat (?:did|have) we (?:talk(?:ed)?|discuss(?:ed)?|chat(?:ted)?|cover(?:ed)?|been)\b",
        r"\bhow (?:has|have|did) .{0,120}\b(?:changed?|evolved?|progress(?:ed)?|develop(?:ed)?)\b",
        r"\bwhat(?:'s| is| has been) (?:new|going on|happening) (?:with|in)\b",
    ),
    _rule(
        "fact", "it asks for what was said before",
        r"\bremind me\b", r"\b(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|session)\b",
        r"\b(?:did you|(?<!\bcan )(?<!\bcould )(?<!\bwould )(?<!\bwill )(?<!\bdo )you)"
        r" (?:just |previously |originally )?"
        r"(?:recommend|suggest|mention|advise|propose|g[ia]ve|tell|told|s[ae]y|said)(?:e?d)?\b",
        r"\b(?:does|did|do|has|have|is) (?!you\b|i\b|we\b)\w+(?: \w+)? (?:recommend|suggest|advis|propos)"
        r"(?:e?d|es?|ing)?\b",
        r"\b(?:did|have) i (?:ever )?(?:tell|told|mention(?:ed)?|say|said) (?:to )?you\b",
    ),
    _rule("fact", "it asks for a habit", r"\bhow (?:often|frequently) do(?:es)?\b"),
    _rule(
        "order", "it compares times",
        rf"\bhow (?:long|many {_SPAN}|much (?:time|earlier|later|longer)|old (?:was|were))\b"
        r".*\b(?:ago|between|since|before|after|pass(?:ed)?|elapsed?|until|till|take|took|apart|when|been|from|spent)\b",
        r"\b(?:first|earlier|later|last|most recent(?:ly)?|earliest|latest)\b.*\bor\b",
        r"\b(?:in (?:what|which) order|(?:the )?order (?:of|in which)|chronological(?:ly)?|came (?:first|last)"
        rf"|happened (?:first|last(?! {_SPAN}))|from (?:earliest|oldest|first) to (?:latest|newest|last))\b",
        r"^(?:who|what|which|where)\b.*\b(?:right |shortly |just |immediately |soon )?(?:before|after) (?:the|my|i|we"
        r"|he|she|they|that|his|her|their|moving|starting|leaving|getting)\b",
        r"^did .+ (?:before|after) ",
        r"\b(?:first|last|most recent|latest|earliest|second|third) time\b",
        r"\b(?:streak|in a row|consecutive(?:ly)?)\b",
        rf"\b(?:\d+|{_COUNTED}) (?:{_SPAN}|{_WEEKDAY}s?) ago\b", rf"\blast {_WEEKDAY}\b",
    ),
    _rule(
        "count", "it asks for a number of things or times",
        rf"\bhow many\b(?! {_SPAN} (?:old|ago))", r"\bhow often\b", r"\bhow frequently\b",
        r"\b(?:total|overall|combined|average) (?:number|amount|cost|price|time|distance|weight|money|of"
        r"|spend(?:ing)?|\w+s)\b", r"\bthe number of\b", r"\bcount (?:the|all|how|my)\b",
        r"\bhow much\b.*\b(?:in total|altogether|in all|overall|so far|combined|all together|each|more|less|per)\b",
    ),
    _rule(
        "when", "it asks when something happened",
        r"^(?:and |so |but |well,? )?(?:since |until |by )?when (?!(?:i|you|we|should|is the best|to)\b)",
        r"^(?:on |in |at )?(?:what|which) (?:date|day|month|year|week|weekend|season|decade)\b",
        r"\b(?:what|which) (?:was|is) the (?:date|day|year|month) (?:of|when|that|on)\b", r"\bhow long ago\b",
        r"\bsince when\b", r"\bhow long (?:has|have|did|was|were|is|will)\b",
        r"\b(?:remember|tell me|know|recall) when\b",
    ),
    _rule(
        "compare", "it compares things",
        r"^(?:who|what|which|where)\b.*,? and (?:who|what|which|where) (?:did|does|do|was|were|is|are|has|have)\b",
        r"\b(?:compare|compared|comparison|difference|differences|differ|in common|similarities|similar to)\b",
        rf"\b{_MORE} (?:.{{0,80}} )?than\b",
        r"\bboth\b", rf"^(?:which|who|what)\b.*\b(?:,|{_MORE}|most|least|best|often)\b.*\bor\b",
        _CHANGE,
    ),
    _rule(
        "advice", "it asks for advice, which may depend on the user",
        r"\b(?:recommend(?:ations?)?|suggest(?:ions?)?|advice|tips|ideas? for|inspiration)\b",
        r"\b(?:should|could|can|might) (?:i|we) (?:\w+ )?(?:do|try|cook|bake|make|serve|drink|buy|get|wear|watch|read"
        r"|visit|eat|bring|pack|take|give|use|learn|go|see|play|plant|order|prepare|choose|pick|start)\b",
        r"\b(?:any|some) (?:good )?(?:ideas|thoughts|tips|advice|help)\b",
        r"\bhelp me (?:\w+ )?(?:choose|pick|decide|plan|find|figure)\b",
    ),
    _rule(
        "inference", "it asks for a conclusion from several facts",
        r"\b(?:would|might|could) (?!you\b)\w+(?:'s)? .{0,60}\b(?:be|likely|enjoy|prefer|like|want|consider|still|have"
        r"|do|become|choose|feel|say|pursue|move)\b",
        r"\b(?:likely|probably|presumably|infer(?:red)?|implies?|suggests? about|personality|traits?|attributes"
        r"|what kind of person|political leaning|financial status)\b",
        r"\bdo you think\b", r"\bwhat (?:might|could|would|can)\b", r"^why (?:might|would|do you think)\b",
        r"^(?:in )?(?:what|which|how|where|who)\b.{0,90}\b(?:could|might|would) (?!you\b|i\b|we\b)",
        r"\b(?:potentially|possibly)\b",
    ),
    _rule(
        "task", "it is a task to carry out",
        r"^(?:please,? |can you |could you |would you |will you |i (?:want|need) you to |help me (?:to )?|let's )*"
        r"(?:write|draft|compose|translate|rewrite|rephrase|proofread|fix|debug|generate|create|code|implement|convert"
        r"|format|calculate|solve|correct|edit|shorten|expand|paraphrase|sing|roleplay|pretend|make up|brainstorm"
        r"|come up with|invent|spell|round|work out)\b",
        r"^(?:please )?(?:turn|put|check|sort|rank|make|count|summari[sz]e|explain|order|arrange|find)\b.{0,60}"
        r"\b(?:this|these|the following|words?|line|text|sentence|paragraph|error)\b[^:]{0,40}:",
        r"^count the (?:vowels|letters|words|characters|syllables)\b", r"^how (?:do|would) you (?:spell|pronounce)\b",
        r"^(?:give me|what(?:'s| is)) (?:a |an |another )?(?:synonyms?|antonyms?|words?|rhymes?) (?:for|of)\b",
        r"^(?:what(?:'s| is)|how much is) [\d.,]+ (?:%|percent of|times|plus|minus|divided by|[-+*/x])",
        r"^(?:tell me a (?:joke|story|riddle)|make (?:me )?an? (?:poem|song|story|list of (?!all|my|the things i)))",
    ),
    _rule(
        "list", "it asks for all of several things",
        r"^(?:please |can you |could you )?(?:list|name|enumerate)\b", r"\b(?:all|every) (?:the|of|my|our|\w+s)\b",
        r"\b(?:what|which) (?:are (?:all |some of )?the|kinds|types|sorts|different|other|various|all)\b",
        rf"^(?:in |at |on |to |for |with |from )?(?:what|which) (?!(?:size|colou?r) )(?:\w+ ){{0,4}}{_NOT_PLURAL}"
        rf"\w{{2,}}s (?:(?:in|of|at|for|from) (?:\w+ ){{1,3}})?(?:{_DOES}|{_SELF})\b",
        rf"^what are some (?:of )?(?:\w+ ){{0,3}}{_NOT_PLURAL}\w{{2,}}s\b",
        r"^(?:where|who|what) (?:else )?(?:has|have) \S+ .{0,60}(?:ed|been|made|done|gone|seen|read|bought|written"
        r"|taken|met|won|given|had|eaten|grown|found|lost)\b",
        r"^(?:who|what) (?:are|(?:has|have) been) (?:my|his|her|our|their|\S+'s)\b", r"\bwhat else\b",
        r"\bexamples of\b",
        rf"^(?:what|who|whom|where)(?: all)?(?:'d| did|'ve| have) (?:i|we) \w+.{{0,60}}{_LONG_PERIOD}",
        r"\b(?:what|who) all\b",
        r"^who(?: all)?(?:'s| is| are| was| were|) (?:came|come|coming|attended|attending|showed up|turned up|joined"
        r"|joining|invited|(?:there )?at (?:the|my|our|his|her) (?:\w+ )?(?:party|wedding|dinner|meeting|birthday"
        r"|barbecue|funeral|reunion|trip|lunch|event))\b",
        r"^what (?:do|have) (?:i|we) (?:have |got )?(?:planned|coming up|going on|scheduled"
        r"|(?:on )?(?=(?:on|for|next|this|tomorrow)\b))",
        r"^what(?:'s| is| are) (?:coming up|on my (?:calendar|schedule|agenda)|(?:my|our) plans)\b",
        r"^what (?:\w+ ){0,2}\w{3,}s (?:did|have) (?:i|we)\b",
        r"^(?:what|which) recurring\b", r"\bapart from\b", r"^who (?:else )?(?:is|are) in \S+ (?:family|household)\b",
        r"^do(?:es)? \S+ have (?:any )?(?:siblings|relatives|friends|children|kids|pets|hobbies)\b",
    ),
    _rule(
        "identity", "it asks for a lasting fact about the user",
        rf"^(?:what(?:'s| is| are| was)|do you (?:know|remember)|tell me) (?:my|our) (?:current |own )?{_ATTRIBUTE}\b",
        rf"^(?:who|what)(?:'s| is| are) (?:the name of )?my {_RELATION}\b",
        r"^(?:where|what) do i (?:currently )?(?:live|work|study|do for (?:a living|work))\b",
        r"^(?:where|which \w+) am i from\b", r"^how old am i\b",
        r"^am i (?:an?|allergic|married|single|vegan|vegetarian|religious)\b",
        r"^do i (?:currently )?(?:have|own|live|work|smoke|drink|drive) (?:(?:any|a|an|in|at|as|for) )?\w+[ ?]*$",
    ),
    _rule(
        "preference", "it asks what the user likes or usually does",
        r"\bmy (?:\w+ )?favou?rite\b", rf"^(?:what|which|how|who|where)\b.{{0,60}}\bdo i (?:\w+ )?{_HABIT}\b",
        rf"^do i (?:really |usually |still )?{_HABIT}\b", r"\bmy (?:usual|preferred|go-to)\b",
    ),
    _rule(
        "general", "it asks how something is done in general",
        r"^(?:(?:can|could|would|will) you (?:please )?(?:tell|show|teach|explain to) me )?"
        r"(?:how (?:do|can|should|would|could) (?:i|you|we|one)|how to"
        r"|what(?:'s| is) the (?:best|easiest|right) way)\b",
        r"^(?:what does .{1,60} (?:mean|stand for)|define|explain|what(?:'s| is) the (?:meaning|definition|capital"
        r"|population|formula) (?:of|for))\b", rf"^how (?:do (?!{_PERSON})\w{{2,}}s|does an? \w+(?: \w+)?) work\W*$",
        rf"^(?:why|how) (?:do|are) (?!{_PERSON})\w{{2,}}s \w+\W*$",
        rf"^what (?:causes|makes) (?!{_PERSON})\w+(?: \w+)?\W*$",
        rf"^how (?:long|much|many \w+) (?:do you|does it take to|does an?|are in an?) (?!.*\b{_PERSON})",
        rf"^is (?:an? )?(?!{_PERSON})\w+ (?:an? \w+|(?:good|bad|safe|healthy) for (?:the |your )?\w+)\W*$",
    ),
)  # fmt: skip
_HISTORY = re.compile(
    r"\b(?:previous(?:ly)?|used to|formerly|former|originally|initially|at first|before(?= ?[?.!]*$| (?:i|we|that"
    r"|the|my|moving|switching|getting)\b)|back then|in the past|no longer|old (?:one|job|address|apartment|phone|car"
    r"|boss|company)|changed?|evolved?|progress(?:ed)?|develop(?:ed)?|over time|history|earlier)\b"
)
_COUNT = re.compile(r"\b(?:how (?:many|often|frequently|much)|number of|count|total|times)\b")
_STATE = re.compile(r"\bhow (?:many|much) (?:\w+ ){1,4}?(?:do|does|am|are|is|was|were)\b")
"""A count of what is, of which telling twice is one."""
_PAST = re.compile(r"\b(?:did|was|were|had)\b")
_PERFECT = re.compile(r"\b(?:(?:have|has|\w+'ve)((?: [\w']+){1,5})|(?:i|we|he|she|they) (\w+))")
_PLANS = frozenset({"got", "planned", "scheduled", "booked"})
"""Participles of what is or will be, as in `What have I got planned?`"""
_CALCULATED = re.compile(
    r"\b(?:how (?:many|much|long|often|frequently|old)|total|average|percent(?:age)?|difference|sum"
    r"|how (?:has|have|did) .{0,80}\b(?:changed?|develop(?:ed)?|evolved?|progress(?:ed)?|gr[eo]wn?|risen?"
    r"|fall(?:en)?))\b"
)


def find_intent(question: str) -> Finding:
    """Return what a question is after, by the first rule that tells.

    >>> find_intent("How many times did I go hiking since May?")
    Finding(intent='count', reason='it asks for a number of things or times')
    """
    text = _normalize(question)
    for rule in _RULES:
        if rule.pattern.search(text):
            if rule.intent == "general" and _ABOUT_SELF.search(_HOW_TO.sub("", text)):
                continue
            return Finding(intent=rule.intent, reason=rule.reason)
    return Finding(intent=None, reason="no rule tells")


def is_about_user(task: str) -> bool:
    """Return whether a task names something of the user, so that memories matter that don't answer a question.

    >>> is_about_user("Draft a card for my mother"), is_about_user("Draft a toast for any wedding")
    (True, False)
    """
    return _OWNS.search(_normalize(task)) is not None


def asks_for_history(question: str) -> bool:
    """Return whether a question is about what was before, so that replaced memories matter.

    >>> asks_for_history("Where did I work before I moved?"), asks_for_history("Where do I work?")
    (True, False)
    """
    return _HISTORY.search(_normalize(question)) is not None


def asks_for_change(question: str) -> bool:
    """Return whether a question asks how much something changed in a time, so that what held before matters.

    >>> asks_for_change("How much has my rent gone up since May?"), asks_for_change("How much is my rent?")
    (True, False)
    """
    return re.search(_CHANGE, _normalize(question)) is not None


def counts_events(question: str) -> bool:
    """Return whether a question asks how often something happened, so that each time it was told counts.

    >>> counts_events("How many times did I run?"), counts_events("How many bikes do I own?")
    (True, False)
    """
    text = _normalize(question)
    return _COUNT.search(text) is not None and _STATE.search(text) is None


def asks_for_past(question: str) -> bool:
    """Return whether a question is about what was or has been, so that a count or a list of it holds former values.

    >>> asks_for_past("How many cars have I had?"), asks_for_past("How many cars have I got?")
    (True, False)
    """
    text = _normalize(question)
    told = [set(" ".join(match.groups("")).split()) for match in _PERFECT.finditer(text)]
    return _PAST.search(text) is not None or any(
        _PLANS.isdisjoint(words) and any(map(is_past, words)) for words in told
    )


def asks_for_calculation(question: str) -> bool:
    """Return whether the answer is a number that needn't stand in any memory.

    >>> asks_for_calculation("How many books did I read?")
    True
    """
    return _CALCULATED.search(_normalize(question)) is not None


def _normalize(question: str) -> str:
    if len(question) > _MOST:
        question = f"{question[: _MOST // 2]} {question[-_MOST // 2 :]}"
    return " ".join(question.casefold().replace("\u2019", "'").split())
