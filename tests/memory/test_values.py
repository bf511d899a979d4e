"""The one form in which times, dates, numbers, units and currencies are compared."""

import pytest

from meve.memory._contradiction.values import normalise_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7:15", "07:15"),
        ("1.5k", "1500"),
        ("six in the evening", "18:00"),
        ("half past six pm", "18:30"),
        ("noon", "12:00"),
        ("two hundred and five", "205"),
        ("one point five kilos", "1500g"),
        ("the third of May", "the 05-03"),
        ("on the twenty-first of June", "on the 06-21"),
        ("a three-year-old, a four-year-old, a ninety-minute film", "a 36month-old, a 48month-old, a 90min film"),
        ("twenty-five or two", "25 or 2"),
        ("my first and second car", "my first and second car"),
        ("18 thousand", "18000"),
        ("2026-11-30", "2026-11-30"),
        ("30 November 2026", "2026-11-30"),
        ("30.11.2026", "2026-11-30"),
        ("an hour and ninety minutes", "an hour and 90min"),
        ("from 10 to 12", "from 10 to 12"),
        ("nineteen eighty four", "19 84"),
        ("one of the big ones", "one of the big ones"),
        ("0151 442 7780", "0151 442 7780"),
        ("Tuesdays", "Tuesday"),
        ("1m and 1 m and 1 metre", "1m and 1 m and 1000mm"),
        ("a 5G network, 5 g of salt", "a 5-G network, 5g of salt"),
        ("£5 or 5 pounds", "5gbp or 5pound"),
        ("¥5 or 5 yen", "¥5 or 5yen"),
        ("1.500 euros or €1.500, 1.5 euros", "1.500 euros or 1.500eur, 1.5eur"),
        ("1.000 euros, 1.00 euros", "1.000 euros, 1eur"),
    ],
)
def test_values_have_one_form(text, expected):
    assert normalise_values(text) == expected
