"""No request goes out earlier than `Retry-After` asks, in whatever form it does."""

from __future__ import annotations

from email.utils import formatdate
from itertools import pairwise
from time import gmtime, strftime

import pytest

from muybridge import RateLimited, WaitTimeout
from muybridge_protocol.http import HttpResponse

from .drivers import MakeClient
from .in_process import World
from .requests_made import image

FORMS = {
    "IMF": "%a, %d %b %Y %H:%M:%S GMT",
    "RFC 850": "%A, %d-%b-%y %H:%M:%S GMT",
    "asctime": "%a %b %e %H:%M:%S %Y",
}


def slow_down(*fields: tuple[str, str]) -> HttpResponse:
    return HttpResponse(429, fields, b'{"error": "slow down"}')


def waited(make_client: MakeClient, *fields: tuple[str, str]) -> float:
    """Return how long a create waits after a 429 with these headers."""
    world = World()
    world.instead.append(slow_down(*fields))
    make_client(world).create(image())
    first, second = (seen.at for seen in world.posts)
    return second - first


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("30", 30), ("30.0", 30), ("29.001", 30), ("0.2", 1), ("00030", 30), (" 7 ", 7), ("0", 0)],
)
def test_seconds(make_client: MakeClient, asked: str, seconds: float) -> None:
    """Seconds may have decimals, and are rounded up."""
    assert waited(make_client, ("Retry-After", asked)) == seconds


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("date", [None, "IMF", "RFC 850", "asctime", "unreadable"])
def test_dates(make_client: MakeClient, form: str, date: str | None) -> None:
    """A date in any of its forms counts from the response's own, or else from the wall clock."""
    clock_of_server = World().clock.wall() + (0 if date in (None, "unreadable") else 5000)
    fields = [("Retry-After", strftime(form, gmtime(clock_of_server + 45)))]
    if date is not None:
        own = FORMS.get(date, "today")
        fields.append(("Date", strftime(own, gmtime(clock_of_server))))
    assert waited(make_client, *fields) == pytest.approx(45, abs=1)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("has_date", [True, False])
@pytest.mark.parametrize("before", [1, 8 * 3600])
def test_a_date_that_is_over(
    make_client: MakeClient, *, form: str, has_date: bool, before: int
) -> None:
    """A date before that of the response was set by another clock, or in another time zone.

    How long to wait by that clock is not known: a create is not sent again, and a poll goes on at
    its own pace.
    """
    world = World()
    now = world.clock.wall()
    fields = [("Retry-After", strftime(form, gmtime(now - before)))]
    if has_date:
        fields.append(("Date", formatdate(now, usegmt=True)))
    client = make_client(world)
    task = client.create(image())
    world.instead.append(slow_down(*fields))
    client.wait(task)
    assert len(world.queries) > 1
    posts = len(world.posts)
    world.instead.append(slow_down(*fields))
    with pytest.raises(RateLimited) as caught:
        client.create(image())
    assert len(world.posts) == posts + 1
    assert caught.value.retry_after is None


def test_a_date_that_is_now(make_client: MakeClient) -> None:
    """A date of the same second as the response's asks for no pause."""
    now = formatdate(World().clock.wall(), usegmt=True)
    assert waited(make_client, ("Retry-After", now), ("Date", now)) == 0
    assert waited(make_client, ("Retry-After", now)) == 0


def test_the_longest_of_several(make_client: MakeClient) -> None:
    """Of several pauses the longest counts."""
    fields = (("Retry-After", "5"), ("retry-after", "31.5"), ("Retry-After", "7"))
    assert waited(make_client, *fields) == 32


@pytest.mark.parametrize(
    "asked",
    ["121", "120.5", "9" * 11, "9" * 5000, "9" * 400 + ".5", formatdate(2e10, usegmt=True)],
    ids=lambda asked: asked[:12],
)
def test_more_than_two_minutes(make_client: MakeClient, asked: str) -> None:
    """A create that is asked to wait for longer ends at once, however long that is."""
    world = World()
    world.instead.append(slow_down(("Retry-After", asked)))
    with pytest.raises(RateLimited) as caught:
        make_client(world).create(image())
    assert len(world.posts) == 1
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 120


UNCLEAR = [
    *(
        "-5",
        "+5",
        "inf",
        "nan",
        "1e9",
        "5 s",
        "5, 5",
        "1_000",
        "\u0663",
        "\uff15",
        "\u00b2",
        "soon",
    ),
    *("Sat, 21 Nov 99999 12:00:00 GMT", "Sat, 31 Feb 2026 12:00:00 GMT", "2026-11-21T12:00:00Z"),
]


@pytest.mark.parametrize("asked", UNCLEAR, ids=ascii)
def test_what_cannot_be_read(make_client: MakeClient, asked: str) -> None:
    """A create does not guess when it may be sent again: it ends, and nothing was charged."""
    world = World()
    world.instead.append(slow_down(("Retry-After", asked)))
    with pytest.raises(RateLimited) as caught:
        make_client(world).create(image())
    assert len(world.posts) == 1
    assert caught.value.retry_after is None


@pytest.mark.parametrize("asked", UNCLEAR, ids=ascii)
def test_a_poll_that_cannot_read_it(make_client: MakeClient, asked: str) -> None:
    """A poll, which costs nothing, goes on at its own pace."""
    world = World()
    client = make_client(world)
    task = client.create(image())
    world.instead.append(slow_down(("Retry-After", asked)))
    client.wait(task)
    assert len(world.queries) > 1


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_texts(make_client: MakeClient, form: str) -> None:
    """A text request counts a date without the response's own from the wall clock, too."""
    world = World()
    asked = strftime(form, gmtime(world.clock.wall() + 45))
    world.instead.append(slow_down(("Retry-After", asked)))
    make_client(world).generate_content("textg-2.5-pro", "A horse")
    first, second = (seen.at for seen in world.posts)
    assert second - first == pytest.approx(45, abs=1)


def test_a_bare_id_that_is_answered_429(make_client: MakeClient) -> None:
    """A task of unknown family is polled as seldom as any may be: at 30 s growing to 60 s."""
    world = World()
    world.always = slow_down()
    with pytest.raises(WaitTimeout):
        make_client(world).wait("task-1", timeout=600)
    times = [seen.at for seen in world.queries]
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0
    assert min(gaps) >= 30
    assert min(gaps[4:]) >= 60
