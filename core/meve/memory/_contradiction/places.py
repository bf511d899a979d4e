"""Names of places of one kind: a city or country replaces another, but Germany and Berlin may both hold.

The lists are short: names that are also a region, a district or another spelling are left out, and of places that
aren't listed both stay.
"""

import re
from collections.abc import Collection

_CITIES = """
aachen aalborg aarhus aberdeen accra adelaide albuquerque algiers alicante almería amiens amman amsterdam angers
ankara annecy antwerp arnhem astana asunción athens atlanta auckland augsburg austin avignon badajoz baghdad
bakersfield baku baltimore bamberg bandung bangalore bangkok barcelona bari basel bayreuth beijing beirut belfast
belgrade belém bergamo bergen berlin bern besançon białystok bielefeld bilbao bochum bogotá boise bologna bonn
bordeaux boston brasília bratislava braunschweig bremen bremerhaven brisbane bristol brno bruges brussels bucharest
budapest buenos-aires burgos busan bydgoszcz caen cagliari cairo calgary cambridge canberra canterbury cape-town
caracas cardiff cartagena casablanca catania changsha chemnitz chengdu chennai chicago chongqing christchurch
cleveland cluj coimbra cologne copenhagen cork cottbus coventry curitiba daejeon dakar dallas damascus darmstadt
debrecen delft delhi denver detroit dhaka dijon dortmund drammen dresden dublin duisburg dundee durban düsseldorf
edinburgh edirne edmonton eindhoven enschede erfurt esbjerg espoo essen exeter fez florence frankfurt freiburg fukuoka
funchal galway gdańsk gdynia geneva genoa ghent giessen gijón glasgow gothenburg granada graz grenoble groningen
guadalajara guangzhou guayaquil gwangju göttingen haarlem haifa halle hamburg hangzhou hanoi hanover havana heidelberg
helsinki hiroshima hobart honolulu houston hyderabad iași ibadan incheon ingolstadt innsbruck ipswich istanbul izmir
jaipur jakarta jena jerusalem johannesburg joinville jyväskylä kaiserslautern kampala karachi karlsruhe kassel
kathmandu katowice kaunas kazan kiel kigali kinshasa klagenfurt klaipėda kobe koblenz kolkata košice kraków krefeld
kristiansand kuala-lumpur kunming kuopio kyiv kyoto lagos lahore las-vegas lausanne leeds leicester leiden leipzig
leuven lille lima limerick linköping linz lisbon liverpool ljubljana london los-angeles louisville luanda lubbock
lublin lucknow ludwigshafen lugo lund lusaka lviv lyon lübeck maastricht madrid magdeburg mainz malmö manchester
manila mannheim maputo maribor marrakesh marseille medellín melbourne memphis metz mexico-city miami milan milwaukee
minneapolis minsk modena monterrey montevideo montpellier montreal moscow mulhouse mumbai munich mysore málaga münster
nagoya nairobi nanjing nantes naples nashville newcastle nice nicosia nijmegen norwich nottingham novi-sad nuremberg
odense oklahoma-city oldenburg olomouc orlando osaka oslo oulu oviedo oxford paderborn padua palermo paris passau
perth perugia pforzheim philadelphia phoenix pilsen pisa pittsburgh plovdiv plymouth podgorica poitiers portland porto
potsdam poznań prague pretoria pune pécs quito rabat raleigh ravenna recife regensburg reims rennes reykjavik riga
rijeka rome rosario rostock rotterdam rouen rzeszów sacramento salamanca san-diego san-francisco santiago sapporo
sarajevo seattle sendai seoul seville shanghai sheffield shenyang shenzhen siegen siena skopje sofia sousse
southampton stavanger stockholm strasbourg stuttgart suzhou swansea sydney szczecin szeged tacoma taipei tallahassee
tallinn tampa tampere tangier tartu tbilisi tehran tel-aviv thessaloniki timișoara tirana tokyo toronto toruń toulon
toulouse trento trier trieste tromsø trondheim tucson tunis turin turku târgu-mureș ulm uppsala utrecht valencia
vancouver vantaa varna venice verona vienna vigo vilnius västerås wakefield warsaw wellington wolfsburg wolverhampton
wrocław wuhan wuppertal würzburg xiamen yerevan yokohama zadar zagreb zaragoza zurich zwolle łódź
"""
_COUNTRIES = """
afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahrain bangladesh belarus
belgium belize benin bolivia botswana brazil bulgaria burundi cambodia cameroon canada chile china colombia costa-rica
croatia cuba cyprus czechia denmark ecuador egypt eritrea estonia ethiopia fiji finland france gabon germany ghana
greece guatemala haiti honduras hungary iceland india indonesia iran iraq israel italy jamaica japan kazakhstan kenya
kuwait laos latvia lebanon lesotho liberia libya liechtenstein lithuania madagascar malawi malaysia malta
mauritania mauritius moldova mongolia montenegro morocco mozambique myanmar namibia nepal netherlands new-zealand
nicaragua nigeria norway oman pakistan panama paraguay peru philippines poland portugal qatar romania russia rwanda
saudi-arabia senegal serbia slovakia slovenia somalia south-africa south-korea spain sri-lanka sudan sweden switzerland
syria tanzania thailand togo tunisia turkey uganda ukraine uruguay uzbekistan venezuela vietnam yemen zambia zimbabwe
"""
_KINDS = tuple(frozenset(frozenset(name.split("-")) for name in names.split()) for names in (_CITIES, _COUNTRIES))
_WORDS = """
live lives lived living address reside resides settled based born home house flat place spot
"""
WORDS = frozenset(_WORDS.split())
"""Words of a statement that says where somebody or something is."""
_NAME = r"((?:[^\W\d_a-z][\w'’-]*(?: (?=[^\W\d_a-z]))?)+)"
_HOME, _MOVE = re.compile(rf"\b[Ll]ives? (?:[a-z][\w-]* ){{0,6}}in {_NAME}"), re.compile(rf"\b[Mm]oved to {_NAME}")


def are_of_one_kind(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether both names, as sets of words in lower case, are known cities, or known countries.

    >>> are_of_one_kind({"berlin"}, {"hamburg"}), are_of_one_kind({"berlin"}, {"germany"})
    (True, False)
    """
    return any(frozenset(one) in kind and frozenset(other) in kind for kind in _KINDS)


def move_between_places(older: str, newer: str) -> bool:
    """Return whether one statement tells of a home in a known place, and the other of a move to another of its kind.

    >>> move_between_places("I live in Kiel.", "I moved to Oslo.")
    True
    >>> move_between_places("I live in Kiel.", "I moved to Google.")
    False
    """
    home, move = _HOME.search(older), _MOVE.search(newer)
    if home is None or move is None:
        return False
    before, after = (match[1].lower().split() for match in (home, move))
    return before != after and are_of_one_kind(before, after)
