"""Names of places of one kind: a city or country replaces another, but Germany and Berlin may both hold.

The lists are short: names that are also a region, a district or another spelling are left out, and of places that
aren't listed both stay.
"""

from collections.abc import Collection

_CITIES = """
aachen aalborg aarhus aberdeen accra adelaide algiers amman amsterdam ankara antwerp athens atlanta auckland augsburg
austin baghdad baku baltimore bangkok barcelona basel beijing beirut belfast belgrade bergen berlin bern bilbao
bochum bogotá bologna bonn bordeaux boston bratislava bremen brisbane bristol brussels bucharest budapest buenos-aires
cairo calgary canberra cape-town caracas cardiff casablanca chemnitz chennai chicago cleveland cologne copenhagen cork
curitiba dakar dallas damascus delhi denver detroit dhaka dortmund dresden dublin dundee durban düsseldorf
edinburgh edmonton eindhoven erfurt essen fez florence frankfurt freiburg gdańsk geneva genoa ghent glasgow gothenburg
graz grenoble hamburg hanoi hanover havana heidelberg helsinki houston hyderabad innsbruck istanbul izmir jakarta
jerusalem johannesburg karachi karlsruhe kassel kathmandu kazan kiel kinshasa kobe kolkata kraków kuala-lumpur kyiv
kyoto lagos lahore las-vegas lausanne leeds leicester leipzig leuven lille lima linz lisbon liverpool ljubljana london
los-angeles luanda lugo lund lviv lyon maastricht madrid mainz malmö manchester mannheim marrakesh marseille medellín
melbourne memphis mexico-city miami milan milwaukee minneapolis minsk montevideo montpellier montreal moscow mumbai
munich münster nairobi nantes naples nashville nice nijmegen nottingham nuremberg odense orlando osaka oslo oxford
palermo paris perth philadelphia phoenix pittsburgh portland porto potsdam prague pretoria quito rabat reykjavik riga
rome rostock rotterdam san-diego san-francisco santiago sapporo sarajevo seattle seoul seville shanghai sheffield
shenzhen skopje sofia southampton stavanger stockholm strasbourg stuttgart sydney tallinn tampa tampere tartu
tbilisi tehran tel-aviv thessaloniki tirana tokyo toronto toulouse trieste trondheim tromsø tunis turin turku uppsala
utrecht valencia vancouver venice verona vienna vigo vilnius warsaw wellington wrocław würzburg yerevan yokohama zagreb
zaragoza zurich zwolle
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


def are_of_one_kind(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether both names, as sets of words in lower case, are known cities, or known countries.

    >>> are_of_one_kind({"berlin"}, {"hamburg"}), are_of_one_kind({"berlin"}, {"germany"})
    (True, False)
    """
    return any(frozenset(one) in kind and frozenset(other) in kind for kind in _KINDS)
