"""Price files: what they say, and what is wrong with them."""

from __future__ import annotations

import pickle
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge import load_prices
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.estimates import (
    Price,
    PriceList,
    Quantities,
    Unit,
    estimate_of,
    parse_prices,
    text_quantities,
)
from muybridge_protocol.estimates.price_entry import read_price
from muybridge_protocol.estimates.price_file import LARGEST_FILE
from muybridge_protocol.families import FAMILIES, ImgbRequest, Unlisted, VidmRequest, VidsbRequest
from muybridge_protocol.text.models import TEXT_MODELS

PRICES = """
# What we pay, as of today.
currency = "USD"

prices = [
    {model = "imgb-2", tier = "low", per_picture = 0.011},
    {model = "imgb-2", tier = "high", per_call = 0.1},
    {model = "vidsb_2_0_pro", per_second = 0.1},
    {family = "vidsb", per_call = 2},
    {family = "vidsb", unlisted_model = "vidsb_3_0", per_second = 1.25},
    {family = "vidd", model = "viddq3-pro", tier = "1080p", per_second = 0.2},
    {family = "vidm", model = "vidm-1", per_1000_tokens = 3},
    {family = "vidm", per_call = 0.40},
    {model = "textg-2.5-pro", per_1000_tokens = 0.004},
    {family = "text", unlisted_model = "textg-9", per_call = 0},
]
"""


def problems(*lines: str, currency: str = 'currency = "USD"') -> list[str]:
    """Return what is wrong with a file that has these prices."""
    listed = "".join(f"{line},\n" for line in lines)
    with pytest.raises(InvalidInput) as caught:
        parse_prices(f"{currency}\nprices = [\n{listed}]")
    assert "(nothing was sent)" in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


def test_a_price_file() -> None:
    """A file gives a currency, and the price of each model and tier as an exact decimal."""
    prices = parse_prices(PRICES)
    assert prices.currency == "USD"
    assert len(prices.prices) == 10
    assert prices.prices[0] == Price(
        family="imgb", model="imgb-2", tier="low", unit=Unit.PICTURE, amount=Decimal("0.011")
    )
    assert prices.prices[-1].family == "text"


@pytest.mark.parametrize("begin", ["\ufeff", "\n"])
def test_files_of_windows(begin: str) -> None:
    """A byte order mark and Windows line ends are no problem, and tables are as good as a list."""
    text = f'{begin}currency = "EUR"\n[[prices]]\nfamily = "vidm"\nper_call = 1\n'
    assert parse_prices(text.replace("\n", "\r\n")).prices == (
        Price(family="vidm", unit=Unit.CALL, amount=Decimal(1)),
    )


@pytest.mark.parametrize(
    ("quantities", "amount"),
    [
        (Quantities(family="imgb", model="imgb-2", tier="low"), "0.011"),
        (Quantities(family="imgb", model="imgb-2", tier="medium"), None),
        (Quantities(family="imgb", model="imgb-2"), None),
        (Quantities(family="imgb", model="imgb-2-r", tier="low"), None),
        (Quantities(family="vidsb", model="vidsb_2_0_pro"), "0.1"),
        (Quantities(family="vidsb", model="vidsb_2_0"), "2"),
        (Quantities(family="vidsb", model="vidsb_3_0"), "1.25"),
        (Quantities(family="vidsb", model="vidsb_4_0"), "2"),
        (Quantities(family="vidm", model="vidm-1"), "3"),
        (Quantities(family="vidm"), "0.40"),
        (Quantities(family="vidd", model="viddq3-pro", tier="720p"), None),
        (Quantities(family="text", model="textg-2.5-pro"), "0.004"),
        (Quantities(family="text", model="textg-9"), "0"),
        (Quantities(family="text", model="textg-2.5-pro-low"), None),
    ],
)
def test_the_price_of_a_request(quantities: Quantities, amount: str | None) -> None:
    """The price of the tier is preferred to that of the model, and that to the family's."""
    found = parse_prices(PRICES).price_of(quantities)
    assert (None if found is None else found.amount) == (amount and Decimal(amount))


def test_the_cost_of_a_request() -> None:
    """A cost is exact, and unknown if the price or the amount is unknown."""
    prices = parse_prices(PRICES)
    low = ImgbRequest(model="imgb-2", prompt="a horse").estimate(prices)
    assert (low.cost, low.currency) == (Decimal("0.011"), "USD")
    assert low.price == prices.prices[0]
    medium = ImgbRequest(model="imgb-2", prompt="a horse", quality="medium").estimate(prices)
    assert (medium.cost, medium.price, medium.currency) == (None, None, "USD")
    ten = VidsbRequest(model="vidsb_2_0_pro", prompt="a horse", duration=10).estimate(prices)
    assert ten.cost == 1
    automatic = VidsbRequest(model=Unlisted("vidsb_3_0"), prompt="a horse").estimate(prices)
    assert automatic.cost is None
    assert automatic.price is not None
    assert VidmRequest().estimate(prices).cost == Decimal("0.4")
    assert VidmRequest().estimate().currency is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("5", "price 1: 5 is not a price; write {model ="),
        ('"imgb-2"', "price 1: 'imgb-2' is not a price"),
        ("{}", "price 1: it names no model and no family"),
        ('{model = "imga"}', "price 1 (imga): it has no price; give one of per_call"),
        (
            '{model = "imga", per_call = 1, per_picture = 1}',
            "it has per_call and per_picture",
        ),
        (
            '{model = "textg-2.5-pro", per_1000_input_tokens = 1}',
            "per_1000_input_tokens needs per_1000_output_tokens as well",
        ),
        (
            '{family = "text", per_1000_output_tokens = 1}',
            "per_1000_output_tokens needs per_1000_input_tokens as well",
        ),
        (
            '{model = "textg-2.5-pro", per_1000_input_tokens = 1, per_1000_tokens = 1}',
            "it has per_1000_tokens and per_1000_input_tokens; give one of",
        ),
        (
            '{family = "vidm", per_1000_input_tokens = 1, per_1000_output_tokens = 1}',
            "per_1000_input_tokens and per_1000_output_tokens are for text; use per_1000_tokens",
        ),
        (
            '{family = "text", per_1000_input_tokens = 1, per_1000_output_tokens = -1}',
            "per_1000_output_tokens: a price must not be negative (got -1)",
        ),
        ('{model = "imga", per_minute = 1}', "'per_minute' is not known here; did you mean per_"),
        ('{model = "imga", price = 1}', "'price' is not known here"),
        ('{model = "imga", per_call = -1}', "per_call: a price must not be negative (got -1)"),
        ('{model = "imga", per_call = -0.5}', "a price must not be negative (got -0.5)"),
        ('{model = "imga", per_call = nan}', "per_call: NaN is not a price; use a number"),
        ('{model = "imga", per_call = inf}', "Infinity is not a price"),
        ('{model = "imga", per_call = -inf}', "-Infinity is not a price"),
        ('{model = "imga", per_call = 1e99999999999999999999}', "Infinity is not a price"),
        ('{model = "imga", per_call = 1e7}', "per_call: use at most 1,000,000, with at most 12"),
        ('{model = "imga", per_call = 1000001}', "use at most 1,000,000"),
        ('{model = "imga", per_call = 0.0000000000001}', "with at most 12 decimals"),
        ('{model = "imga", per_call = "1"}', "'1' is not a number; write per_call = 0.05"),
        ('{model = "imga", per_call = true}', "true is not a number"),
        ('{model = "imga", per_call = [1]}', "[1] is not a number"),
        ('{model = "imga", per_call = 2026-11-23}', "is not a number"),
        (
            '{model = "imga-3", per_call = 1}',
            "has a model 'imga-3'; did you mean imga-2?",
        ),
        ('{model = "zzz", per_call = 1}', "needs family and unlisted_model"),
        ("{model = 5, per_call = 1}", "model: 5 is not a text; put it in quotes"),
        ('{model = "", per_call = 1}', "model: use 1 to 256 characters that can be printed"),
        ('{model = "a\\u0007", per_call = 1}', "characters that can be printed"),
        ('{family = "imgaa", per_call = 1}', "there is no family 'imgaa'; did you mean imga?"),
        ('{family = "vidg", model = "imga", per_call = 1}', "family vidg has no model 'imga'"),
        ('{family = "text", model = "imga", per_call = 1}', "there is no text model 'imga'"),
        ('{unlisted_model = "x", per_call = 1}', "unlisted_model needs a family"),
        ('{model = "imga", unlisted_model = "x", per_call = 1}', "give only one"),
        # A unit that contradicts what a model makes, or how the specification says it is billed.
        ('{model = "imga", per_second = 1}', "per_second does not fit imga, which makes images"),
        ('{model = "vidrPro", per_picture = 1}', "does not fit vidr, which makes videos; use per_"),
        (
            '{model = "vidg_video3", per_call = 1}',
            "per_call does not fit vidg_video3, billed per second; use per_second",
        ),
        ('{model = "vidg_video3_pro", per_second = 1}', "billed per call; use per_call"),
        ('{model = "videos", per_1000_tokens = 1}', "billed per call; use per_call"),
        ('{family = "vidg", per_second = 1}', "does not fit vidg_video3_pro, billed per call"),
        ('{model = "textg-2.5-pro", per_second = 1}', "does not fit a text call; use per_call or"),
        (
            '{model = "imgb-2", tier = "low", per_second = 1}',
            "per_second does not fit imgb-2, billed by quality tier; use per_call or per_picture",
        ),
        # Tiers.
        (
            '{model = "imgb-2", per_picture = 1}',
            "imgb-2 is billed by quality tier; give each tier a price: low, medium and high",
        ),
        ('{family = "imgb", per_picture = 1}', "imgb-2 is billed by quality tier"),
        (
            '{model = "imgb-2", tier = "4k", per_call = 1}',
            "imgb-2 has no tier '4k'; use low",
        ),
        ('{model = "imga", tier = "4k", per_call = 1}', "imga has no tier '4k'; use 1k"),
        ('{model = "vidv_3_1_pro", tier = "4k", per_call = 1}', "did you mean 4K?"),
        ('{model = "vidrPro", tier = "4k", per_call = 1}', "tier: vidrPro has none; leave it out"),
        ('{family = "imga", tier = "4k", per_call = 1}', "tier: it needs a model"),
        ('{model = "textg-2.5-pro", tier = "low", per_call = 1}', "tier: text calls have none"),
    ],
)
def test_what_is_wrong_with_a_price(line: str, said: str) -> None:
    """A wrong price is reported with its place, what is wrong, and what would be accepted."""
    found = problems(line)
    assert any(said in problem for problem in found), found
    assert all(problem.startswith("price 1") for problem in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no currency"),
        ("prices = []", "there is no currency"),
        ('currency = "USD"', "there are no prices"),
        ('currency = "USD"\nprices = 5', "prices is not a list"),
        ("currency = 5\nprices = []", "currency: 5 is not a name"),
        ('currency = " "\nprices = []', "currency: ' ' is not a name"),
        (f'currency = "{"x" * 17}"\nprices = []', "at most 16 characters"),
        ('currency = "USD"\nprice = []', "'price' is not known here; did you mean prices?"),
        ("nonsense", "it is not TOML: "),
        ('currency = "USD"\ncurrency = "EUR"', "it is not TOML: "),
        ("a = " + "[\n" * 100_000, "it is nested too deeply"),
        ("a = " + "9" * 5_000, "line 1: it has more than 1,000 characters"),
        ("\na" + ".a" * 130_000 + " = 1", "line 2: it has more than 1,000 characters"),
        ("#" * (LARGEST_FILE + 1), "it has more than 262,144 characters"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, said: str) -> None:
    """A file that cannot be read as prices is reported, whatever is in it."""
    with pytest.raises(InvalidInput) as caught:
        parse_prices(text)
    assert said in str(caught.value)


def test_a_place_in_toml_is_told() -> None:
    """A mistake in the TOML is reported with its line."""
    with pytest.raises(InvalidInput, match="at line 3, column"):
        parse_prices('currency = "USD"\nprices = [\n  {model = imga},\n]')


def test_two_prices_for_the_same() -> None:
    """A second price for the same thing is reported with the place of the first."""
    assert problems(
        '{model = "imga", per_call = 1}',
        '{family = "imga", unlisted_model = "imga", per_picture = 1}',
        '{model = "imga", tier = "1k", per_picture = 1}',
    ) == ["price 2 (imga): price 1 (imga) is for the same; give only one"]


def test_all_problems_are_told_together() -> None:
    """Every problem of every price is in one error."""
    found = problems(
        '{model = "imgz", per_call = -1}',
        '{family = "vidm", per_call = 1}',
        '{family = "vidm", per_kall = 1}',
        currency="curency = 5",
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "'curency' is not known here; did you mean currency?",
        'there is no currency; write currency = "USD", or another',
        "price 1 (imgz)",
        "price 1 (imgz)",
        "price 3 (vidm)",
        "price 3 (vidm)",
    ]
    many = problems(*['{model = "imgz"}'] * 60)
    assert len(many) == 120
    assert "... and 70 more" in str(
        InvalidInput("the price file", (InputProblem("", said) for said in many))
    )


def test_the_problems_travel() -> None:
    """Another process gets the problems, however they were given."""
    wrong = [InputProblem("price 1", "is no price"), InputProblem("", "there is no currency")]
    error = pickle.loads(pickle.dumps(InvalidInput("the price file", iter(wrong))))  # noqa: S301  our own
    assert error.problems == (*wrong,)
    assert "is no price" in repr(InvalidInput("the price file", iter(wrong)))


@pytest.mark.parametrize(
    ("named", "fitting"),
    [
        ({"model": "imga"}, {Unit.CALL, Unit.PICTURE, Unit.THOUSAND_TOKENS}),
        ({"model": "imgb-2", "tier": "low"}, {Unit.CALL, Unit.PICTURE}),
        ({"model": "imgb-2-r", "tier": "1k"}, {Unit.CALL, Unit.PICTURE}),
        ({"model": "vidg_video3"}, {Unit.SECOND}),
        ({"model": "videos"}, {Unit.CALL}),
        ({"family": "vidm"}, {Unit.CALL, Unit.SECOND, Unit.THOUSAND_TOKENS}),
        ({"model": "textg-2.5-pro"}, {Unit.CALL, Unit.THOUSAND_TOKENS}),
    ],
)
def test_units_fit_what_is_made(named: dict[str, str], fitting: set[Unit]) -> None:
    """A price is per something that the model makes, and that it is billed by."""
    accepted = {unit for unit in Unit if isinstance(read_price({**named, unit: 1}), Price)}
    assert accepted == fitting


def test_models_have_one_family() -> None:
    """A model alone says which family it is of: no two families list the same name."""
    names = [model.name for family in FAMILIES.values() for model in family.models]
    names += TEXT_MODELS
    assert len(set(names)) == len(names)


def test_prices_made_by_a_program() -> None:
    """Prices that no file would hold are refused when they are made, too."""
    for amount in ("-1", "NaN", "Infinity"):
        with pytest.raises(ValueError, match="a price must be 0 or more"):
            Price(family="vidm", unit=Unit.CALL, amount=Decimal(amount))
    for amount in ("1000000.01", "9e999999"):
        with pytest.raises(ValueError, match="a price must be at most 1,000,000"):
            Price(family="vidm", unit=Unit.CALL, amount=Decimal(amount))
    one = Price(family="vidm", unit=Unit.CALL, amount=Decimal(1))
    with pytest.raises(ValueError, match="two prices for the same thing"):
        PriceList("USD", (one, one))


def test_loading(tmp_path: Path) -> None:
    """A file is read as UTF-8; one that is not is reported with its line."""
    path = tmp_path / "prices.toml"
    path.write_text(PRICES, encoding="utf-8")
    assert load_prices(path) == load_prices(str(path)) == parse_prices(PRICES)
    path.write_bytes(b'currency = "USD"\n# \xff\n')
    with pytest.raises(InvalidInput, match="line 2: it is not UTF-8"):
        load_prices(path)
    path.write_bytes(b"#" * (LARGEST_FILE * 4 + 10))
    with pytest.raises(InvalidInput, match="more than 262,144 characters"):
        load_prices(path)
    with pytest.raises(FileNotFoundError):
        load_prices(tmp_path / "missing.toml")


words = st.sampled_from(
    ["currency", "prices", "model", "family", "tier", "per_call", "per_second", "imgb-2", "vidm",
     "text", "low", "=", "[", "]", "{", "}", ",", '"', "'", "\n", ".", "1", "-", "nan", "1e400",
     "true", "#", "[[prices]]", 'currency = "USD"', "\\u0000", "\ud800", "é"]
)  # fmt: skip


@given(st.lists(words, max_size=40).map(" ".join) | st.text(max_size=200))
def test_parsing_raises_nothing_else(text: str) -> None:
    """Whatever a file holds, it is a list of prices or `InvalidInput`, which can be shown."""
    with suppress(InvalidInput):
        assert parse_prices(text).currency


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.sampled_from(["family", "model", "unlisted_model", "tier", *Unit]),
        values | st.sampled_from(["imgb", "imgb-2", "low", "vidm", "text", Decimal("0.5"), 3]),
    )
)
def test_any_entry_is_read_or_reported(entry: dict[str, Any]) -> None:
    """An entry of any shape becomes a price, or a list of what is wrong with it."""
    found = read_price(entry)
    assert isinstance(found, Price) or (found and all(isinstance(said, str) for said in found))


APART = """
currency = "USD"
prices = [
    {model = "textg-2.5-pro", per_1000_input_tokens = 0.001, per_1000_output_tokens = 0.004},
    {family = "text", per_1000_tokens = 1},
]
"""


@pytest.mark.parametrize(
    ("total", "taken", "made", "cost"),
    [
        (1500, 1000, 500, "0.003"),
        (1, 1, 0, "0.000001"),
        (0, 0, 0, "0"),
        (1500, 1000, None, None),
        (1500, None, 500, None),
        (None, 1000, 500, None),
        (1600, 1000, 500, None),
        (-500, -1000, 500, None),
    ],
)
def test_input_and_output(
    total: int | None, taken: int | None, made: int | None, cost: str | None
) -> None:
    """Input and output tokens cost what each costs, and nothing is known if they are not both."""
    prices = parse_prices(APART)
    call = text_quantities("textg-2.5-pro", total, input_tokens=taken, output_tokens=made)
    assert estimate_of(call, prices).cost == (None if cost is None else Decimal(cost))
    other = text_quantities("textg-9", total, input_tokens=taken, output_tokens=made)
    known = total is not None and total >= 0
    assert estimate_of(other, prices).cost == (Decimal(total or 0) / 1000 if known else None)


@pytest.mark.parametrize("known", ["input_tokens", "output_tokens"])
def test_one_of_the_two(known: str) -> None:
    """With only one of the two known, the cost is unknown."""
    call = Quantities(family="text", model="textg-2.5-pro", calls=1, **{known: 1})  # type: ignore[arg-type]
    assert estimate_of(call, parse_prices(APART)).cost is None


def test_before_the_response() -> None:
    """Before the response reports its tokens, the cost of a text call is unknown."""
    assert estimate_of(text_quantities("textg-2.5-pro"), parse_prices(APART)).cost is None


@pytest.mark.parametrize("amount", ["-1", "NaN"])
def test_a_wrong_price_of_output(amount: str) -> None:
    """A price of output tokens is money like any other, and only tokens have one."""
    tokens = {"family": "text", "unit": Unit.THOUSAND_TOKENS, "amount": Decimal(1)}
    with pytest.raises(ValueError, match="a price must be 0 or more"):
        Price(**tokens, output_amount=Decimal(amount))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="input and output have prices of their own only per_1000"):
        Price(family="text", unit=Unit.CALL, amount=Decimal(1), output_amount=Decimal(1))


@pytest.mark.parametrize(
    ("amount", "fits"),
    [
        ("1000000", True),
        ("1000000.0", True),
        ("1000000.000000000001", False),
        ("0.000000000001", True),
        ("0.0000000000001", False),
    ],
)
def test_the_highest_and_the_finest_price(amount: str, fits: bool) -> None:  # noqa: FBT001  a parameter of the test
    """A price may be exactly a million, and have exactly twelve decimals."""
    price = read_price({"family": "vidm", "per_call": Decimal(amount)})
    assert isinstance(price, Price) == fits


@pytest.mark.parametrize(("length", "fits"), [(256, True), (257, False)])
def test_the_longest_name(length: int, fits: bool) -> None:  # noqa: FBT001  the same
    """A name may have exactly 256 characters."""
    price = read_price({"family": "vidm", "unlisted_model": "x" * length, "per_call": 1})
    assert isinstance(price, Price) == fits


def test_every_problem_is_reported() -> None:
    """What is wrong with one price hides nothing that is wrong with those after it."""
    wrong = '{model = "imga"}, {model = "imga", per_call = -1}, {model = "imga", per_call = 1}'
    with pytest.raises(InvalidInput) as caught:
        parse_prices(f'currency = "USD"\nprices = [{wrong}, {{model = "imga", per_call = 2}}, 5]')
    places = [problem.where for problem in caught.value.problems]
    assert places == ["price 1 (imga)", "price 2 (imga)", "price 4 (imga)", "price 5"]
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems  # noqa: S301  our own


FITTING = 'currency = "USD"\nprices = [{model = "imga", per_call = 1}]\n'


def test_the_largest_file_and_the_longest_line() -> None:
    """A file may have exactly 262,144 characters, and a line exactly 1,000."""
    line = f"#{'x' * 999}"
    assert parse_prices(FITTING + line).currency == "USD"
    with pytest.raises(InvalidInput, match="more than 1,000 characters"):
        parse_prices(f"{FITTING}{line}x")
    full = FITTING + "\n" * (LARGEST_FILE - len(FITTING))
    assert parse_prices(full).currency == "USD"
    with pytest.raises(InvalidInput, match="more than 262,144 characters"):
        parse_prices(full + "\n")


def test_a_long_number_is_shortened() -> None:
    """A message shows the first characters of a number, and not all of it."""
    price = read_price({"family": "vidm", "per_call": -(10**60)})
    assert isinstance(price, list)
    (said,) = price
    shown = said.partition("got ")[2].rstrip(")")
    assert len(shown) == 40
    assert shown.startswith("-1000")


def test_the_longest_currency() -> None:
    """A currency may have exactly sixteen characters."""
    fitting = FITTING.replace("USD", "x" * 16)
    assert parse_prices(fitting).currency == "x" * 16
    with pytest.raises(InvalidInput, match="currency: use at most 16 characters"):
        parse_prices(FITTING.replace("USD", "x" * 17))


def test_a_list_is_shown_once() -> None:
    """The repr of a list of prices shows each of them once."""
    assert repr(parse_prices(FITTING)).count("Price(") == 1
