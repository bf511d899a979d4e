"""Elements of HTML whose text isn't simply joined to what stands beside them."""

import pytest

from meve.errors import IngestError
from meve.ingest._html import html_to_markdown
from tests.linear_time import find_growth


def convert(html: str) -> str:
    return html_to_markdown(html)[0]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("25<sup>1</sup> euro", "25^1 euro"),
        ("<b>25</b><sup>1</sup> euro", "**25**^1 euro"),
        ("25<a id='x'></a><sup>1</sup>5", "25^1 5"),
        ("25<sup><a href='#n'>1</a></sup> euro", "25[1] euro"),
        ("25<a href='#n'><sup>[1]</sup></a> euro", "25[1] euro"),
        ("<a href='#n'>10<sup>3</sup></a>", "10^3"),
        ("40<sup>a</sup>, 25<sup>1,2</sup>", "40^a, 25^(1,2)"),
        ("10<sup>-3</sup> and 2<sup>n+1</sup>", "10^-3 and 2^(n+1)"),
        ("10<sub>2</sub> and x<sub>i</sub>", "10_2 and x_i"),
        ("2<sup>1</sup>/<sub>2</sub> cups", "2 1/2 cups"),
        ("CO<sub>2</sub>16 kg", "CO2 16 kg"),
        ("10<sup>3</sup> m<sup>2</sup>", "10^3 m\u00b2"),
        ("H<sub>2</sub>O, Ca(OH)<sub>2</sub>", "H2O, Ca(OH)2"),
        ("1<sup>st</sup>, XIX<sup>e</sup>, n<sup>th</sup>", "1st, XIXe, nth"),
        ("20<sup>o</sup>C, Na<sup>+</sup>, A<sup>\u00ae</sup>", "20\u00b0C, Na+, A\u00ae"),
        ("Lamp<sup>new</sup> <sub>price without VAT</sub>", "Lamp new price without VAT"),
        ("<p>25</p><p><sup>1</sup> Without VAT.</p>", "25\n\n^1 Without VAT."),
        ("<pre>2<sup>32</sup></pre>", "```\n2^32\n```"),
    ],
)
def test_superscript_or_subscript_joins_no_number(html, expected):
    assert convert(html) == expected


@pytest.mark.parametrize(
    "piece",
    [
        "<sup>1</sup>",
        "a<sup>1</sup>",
        "<sup>a",
        "<sub>1</sub>/",
        "<b><sup>1</sup></b>",
    ],
)
def test_html_takes_linear_time(piece):
    def read(text: str) -> object:
        try:
            return convert(text + ">")
        except IngestError:  # nested too deeply
            return None

    assert find_growth(read, [("", piece)], [""]) == []
