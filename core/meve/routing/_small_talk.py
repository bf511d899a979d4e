"""The pattern of small talk: up to four clauses that greet, thank, agree or take leave, and nothing else."""

PRAISE = (
    r"(?:brilliant|fantastic|excellent|wonderful|amazing|impressive|lovely|great|perfect|funny|helpful|kind|sweet"
    r"|hilarious|incredible|superb|adorable|clever)"
)
OPENER = (
    r"(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|night)|thanks?|thank you|thx|bye|goodbye|see you"
    r"|ok|okay|cool|nice|great|awesome|perfect|lol|haha|sorry|yes|no|yeah|nope|sure|never ?mind|got it|wow)"
)
_OPENING = (
    rf"(?:{OPENER}|{PRAISE}|(?:al)?right|fine|good|yep|yup|oh|hm+|ah|well|ha(?:ha)+|cheers|ty|phew|congrats|welcome)"
)
_ASKING = (
    r"(?:i|my|mine|our|we|what|which|who|whom|whose|when|where|why|how|list|show|tell|find|remind|give|name|did|do"
    r"|does|is|are|was|were|can|could|should|would|will)"
)
"""Words of questions and requests, and of what the user tells of himself."""
_WORD = rf"(?:(?!{_ASKING}\b)[\w'-]+)"
_TAKEN = (
    rf"(?:{PRAISE}|help(?:s|ed)?|useful|work(?:s|ed)|makes? sense|quick|fast|good|nice|fine|enough|all|right|clear"
    r"|better|what i (?:needed|wanted|meant|thought)|interesting|true|(?:made|makes) my (?:day|evening|week)|it)"
)
"""What an answer, or the assistant, may be."""
_CLAUSE = (
    rf"(?:{_OPENING}(?: {_WORD}){{0,5}}"
    rf"|(?:this|that|it|you)(?:'s|'re|'ve|'ll| is| are| was| were| has| have)?(?: (?:been|be|really|so|very|just"
    rf"|exactly|quite|too|a|an|such|pretty|much)){{0,3}} {_TAKEN}(?: {_WORD}){{0,3}}"
    rf"|i(?:'ll| will| am going to|'m going to) (?:try|do|think about|check|keep|look into|look at|see|read|note)"
    rf" (?:that|it|this|so|them)(?: {_WORD}){{0,3}}"
    rf"|sounds? (?:{PRAISE}|good|nice|fun|right|like a plan)|will do|makes sense|fair (?:enough|point)|i (?:see"
    r"|understand|agree)|(?:talk|speak|see|catch)(?: to| with| up)? (?:you|ya|later|soon|tomorrow)(?: \w+){0,2}"
    r"|(?:sleep|rest) (?:well|tight)|night(?: night)?|much appreciated|really appreciate(?:d| it)|take care"
    rf"|have a (?:good|nice|great|lovely) \w+(?: {_WORD}){{0,2}}|enjoy your \w+)"
)
SMALL_TALK = rf"^{_CLAUSE}(?:[^\w\s?']+ ?(?:and |but |so |then )?{_CLAUSE}){{0,3}}[^\w?]*$"
"""A whole message of small talk, in lower case."""
