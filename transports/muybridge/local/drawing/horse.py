"""The horse's silhouette: the outlines that clothe a pose's joints.

Units are those of `muybridge.local.drawing.gallop`: lengths in withers, points as complex numbers.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from muybridge.local.drawing.gallop import Leg, Pose, along

Outline = tuple[complex, ...]
"""The corners of a filled polygon."""

Ball = tuple[complex, float]
"""A centre and a radius; the hull around successive balls makes a limb."""

_SMOOTHNESS = 6
"""Points of a smooth curve for each point that it is drawn through."""

_MANE, _TAIL = 0.13, 0.52
"""Length of the mane's locks, and of the tail."""


@attrs.frozen
class Silhouette:
    """A horse's outlines, to be painted in this order.

    Args:
        far: The legs away from the viewer.
        near: All else.
        lines: Light lines on the near side, which separate the muscles.
    """

    far: tuple[Outline, ...]
    near: tuple[Outline, ...]
    lines: tuple[Outline, ...]


def silhouette(pose: Pose) -> Silhouette:
    """Return the outlines of a horse in this *pose*."""
    head = _Head(pose)
    near = [
        *_tail(pose),
        _trunk(pose),
        *_neck(head),
        *_mane(head, pose),
        *_hind_leg(pose.near_hind),
        *_fore_leg(pose.near_fore),
    ]
    return Silhouette(
        far=(*_hind_leg(pose.far_hind), *_fore_leg(pose.far_fore)),
        near=tuple(near),
        lines=tuple(_lines(pose, head)),
    )


class _Head:
    """Places points of the neck and head, which nod as the horse gallops."""

    def __init__(self, pose: Pose) -> None:
        self._pose = pose
        self._turn = cmath.rect(1.0, pose.neck - 0.07)
        # The head keeps half of the neck's turn, so that the face keeps its angle to the ground.
        self._nod = cmath.rect(1.0, -0.5 * pose.neck)

    def on_neck(self, point: complex) -> complex:
        base = 0.33 + 0.80j
        return self._pose.on_trunk(base + (point - base) * self._turn)

    def on_head(self, point: complex) -> complex:
        poll = 0.76 + 1.17j
        return self.on_neck(poll + (point - poll) * self._nod)


def _trunk(pose: Pose) -> Outline:
    tuck = pose.tuck
    croup = 0.03 * tuck - 0.012j * tuck
    loin = 0.012j * tuck
    corners = (
        0.30 + 0.985j,  # withers
        0.20 + 0.985j,
        0.08 + 0.945j,
        -0.08 + 0.925j + loin,
        -0.22 + 0.945j + loin,  # loin
        -0.36 + 0.965j + croup,  # croup
        -0.47 + 0.935j + croup,
        -0.545 + 0.875j + croup,  # dock
        -0.565 + 0.79j + croup,
        -0.52 + 0.70j + croup,  # buttock
        -0.40 + 0.64j + croup,
        -0.27 + 0.63j + 0.5 * croup,  # flank
        -0.12 + 0.585j,
        0.04 + 0.535j,  # belly
        0.18 + 0.515j,
        0.30 + 0.53j,  # girth
        0.40 + 0.575j,
        0.475 + 0.66j,  # breast
        0.49 + 0.75j,
        0.46 + 0.85j,
        0.40 + 0.95j,
    )
    return _smooth([pose.on_trunk(corner) for corner in corners])


def _neck(head: _Head) -> Iterable[Outline]:
    neck = (
        0.19 + 0.95j,
        0.31 + 0.975j,
        0.42 + 1.055j,
        0.55 + 1.135j,  # crest
        0.66 + 1.19j,
        0.74 + 1.20j,
        0.80 + 1.14j,
        0.76 + 1.06j,  # throat
        0.66 + 0.96j,
        0.57 + 0.85j,
        0.50 + 0.73j,
        0.42 + 0.64j,
        0.25 + 0.70j,
    )
    skull = (
        0.715 + 1.205j,
        0.775 + 1.225j,  # poll
        0.83 + 1.20j,  # forehead
        0.89 + 1.145j,
        0.96 + 1.065j,
        1.03 + 0.990j,  # nose
        1.065 + 0.950j,
        1.070 + 0.915j,  # lip
        1.045 + 0.887j,
        1.010 + 0.872j,  # chin
        0.980 + 0.885j,
        0.950 + 0.918j,
        0.90 + 0.962j,  # jaw
        0.84 + 0.995j,
        0.785 + 1.02j,
        0.745 + 1.08j,  # cheek
    )
    near_ear = (0.755 + 1.205j, 0.742 + 1.255j, 0.760 + 1.300j, 0.788 + 1.260j, 0.80 + 1.210j)
    far_ear = (0.785 + 1.205j, 0.790 + 1.255j, 0.815 + 1.292j, 0.826 + 1.250j, 0.825 + 1.200j)
    yield _smooth([head.on_neck(corner) for corner in neck])
    yield _smooth([head.on_head(corner) for corner in skull])
    yield _smooth([head.on_head(corner) for corner in near_ear])
    yield _smooth([head.on_head(corner) for corner in far_ear])


def _mane(head: _Head, pose: Pose) -> Iterable[Outline]:
    locks = 11
    for lock in range(locks):
        part = lock / (locks - 1)
        root = _between(0.40 + 1.01j, 0.735 + 1.185j, part)
        flutter = math.sin(math.tau * (pose.phase - 0.6 * part))
        length = _MANE * (0.75 + 0.5 * math.sin(math.pi * part) + 0.12 * flutter)
        # Wind lays the locks back along the crest; their tips rise and fall.
        heading = math.radians(180.0 - 12.0 * flutter)
        middle = root + cmath.rect(0.5 * length, heading - 0.45)
        tip = middle + cmath.rect(0.6 * length, heading + 0.10 + 0.2 * flutter)
        yield from _limb(
            (head.on_neck(root), 0.022 + 0.012 * part),
            (head.on_neck(middle), 0.018),
            (head.on_neck(tip), 0.002),
        )
    forelock = 0.80 + 1.215j
    yield from _limb(
        (head.on_head(forelock), 0.016), (head.on_head(forelock - 0.07 + 0.025j), 0.004)
    )


def _tail(pose: Pose) -> Iterable[Outline]:
    joints = 10
    strands = ((0.0, 0.045, 1.0), (0.16, 0.035, 0.86), (-0.13, 0.030, 0.80), (0.28, 0.022, 0.66))
    for strand, (droop, thickness, length) in enumerate(strands):
        spot = pose.on_trunk(-0.525 + 0.885j + 0.03 * pose.tuck)
        balls: list[Ball] = []
        for joint in range(joints + 1):
            part = joint / joints
            fullness = thickness * math.sin(math.pi * part**0.8) + 0.024 * (1.0 - part)
            balls.append((spot, fullness + 0.003))
            wave = math.sin(math.tau * (pose.phase - 0.5 * part - 0.04 * strand))
            heading = math.radians(152.0) + (0.95 + droop) * part + 0.22 * part * wave
            spot += cmath.rect(_TAIL * length / joints, heading)
        yield from _limb(*balls)


def _hind_leg(leg: Leg) -> Iterable[Outline]:
    gaskin = _between(leg.upper, leg.middle, 0.35)
    point_of_hock = leg.middle + 0.035 * _unit(leg.middle - leg.fetlock)
    yield from _limb(
        (_between(leg.root, leg.upper, 0.12), 0.16),
        (_between(leg.root, leg.upper, 0.70), 0.122),
        (leg.upper, 0.078),
        (gaskin, 0.074),
        (_between(leg.upper, leg.middle, 0.8), 0.046),
        (leg.middle, 0.042),
    )
    # Buttock and hamstrings fill the angle behind the stifle.
    yield from _limb(
        (leg.root - 0.095 - 0.015j, 0.105),
        (_between(leg.upper, leg.middle, 0.30), 0.078),
        (_between(leg.upper, leg.middle, 0.72), 0.045),
    )
    yield from _limb(
        (_between(leg.upper, leg.middle, 0.6), 0.03),
        (point_of_hock, 0.022),
        (leg.middle, 0.036),
    )
    yield from _limb(
        (leg.middle, 0.042),
        (_between(leg.middle, leg.fetlock, 0.3), 0.029),
        (_between(leg.middle, leg.fetlock, 0.75), 0.025),
        (leg.fetlock, 0.034),
    )
    yield from _foot(leg)


def _fore_leg(leg: Leg) -> Iterable[Outline]:
    yield from _limb(
        (leg.root + 0.05j - 0.06, 0.10),
        (_between(leg.root, leg.upper, 0.6), 0.105),
        (leg.upper, 0.085),
        (_between(leg.upper, leg.middle, 0.3), 0.068),
        (_between(leg.upper, leg.middle, 0.75), 0.040),
        (leg.middle, 0.039),
    )
    yield from _limb(
        (leg.middle, 0.039),
        (_between(leg.middle, leg.fetlock, 0.25), 0.028),
        (_between(leg.middle, leg.fetlock, 0.75), 0.024),
        (leg.fetlock, 0.032),
    )
    yield from _foot(leg)


def _foot(leg: Leg) -> Iterable[Outline]:
    coronet = _between(leg.fetlock, leg.toe - 0.02, 0.55)
    yield from _limb((leg.fetlock, 0.029), (coronet, 0.024))
    sole = cmath.rect(1.0, -leg.sole)
    yield (
        leg.toe,
        leg.toe - 0.086 * sole,
        leg.toe + (-0.088 + 0.034j) * sole,
        leg.toe + (-0.076 + 0.062j) * sole,
        leg.toe + (-0.028 + 0.062j) * sole,
    )


def _lines(pose: Pose, head: _Head) -> Iterable[Outline]:
    shoulder = (0.27 + 0.93j, 0.35 + 0.82j, 0.405 + 0.73j, 0.40 + 0.67j)
    yield from _crease([pose.on_trunk(point) for point in shoulder])
    triceps = (0.22 + 0.73j, 0.24 + 0.66j, 0.29 + 0.615j)
    yield from _crease([pose.on_trunk(point) for point in triceps])
    hip, stifle = pose.near_hind.root, pose.near_hind.upper
    front = 0.11 * _unit(stifle - hip) * 1j
    thigh = (hip + front + 0.04j, _between(hip, stifle, 0.5) + 1.1 * front, stifle + 0.62 * front)
    yield from _crease(thigh)
    jaw = (0.805 + 1.135j, 0.80 + 1.07j, 0.835 + 1.025j, 0.885 + 1.005j)
    yield from _crease([head.on_head(point) for point in jaw])
    eye, nostril = head.on_head(0.868 + 1.118j), head.on_head(1.030 + 0.945j)
    yield from _limb((eye, 0.010), (eye - 0.008 - 0.003j, 0.008))
    yield from _limb((nostril, 0.008), (nostril - 0.008j, 0.006))


def _crease(points: Sequence[complex]) -> Iterable[Outline]:
    """Return a line through *points* that is thinner towards its ends."""
    # Doubled ends make the closed curve turn back at once; its way back is left out.
    curve = _smooth((*points, points[-1], points[0]))[: _SMOOTHNESS * (len(points) - 1) + 1]
    middle = (len(curve) - 1) / 2
    return _limb(
        *((point, 0.006 - 0.004 * abs(i - middle) / middle) for i, point in enumerate(curve))
    )


def _limb(*balls: Ball) -> Iterable[Outline]:
    return (_hull(one, other) for one, other in pairwise(balls))


def _hull(one: Ball, other: Ball) -> Outline:
    """Return the outline of the skin stretched around two balls."""
    (start, start_radius), (end, end_radius) = one, other
    distance = abs(end - start)
    if distance <= abs(end_radius - start_radius):
        centre, radius = max(one, other, key=lambda ball: ball[1])
        return tuple(centre + cmath.rect(radius, math.tau * step / 20) for step in range(20))
    heading = cmath.phase(end - start)
    half = math.acos((start_radius - end_radius) / distance)
    steps = 10
    front = [
        end + cmath.rect(end_radius, heading - half + 2 * half * step / steps)
        for step in range(steps + 1)
    ]
    rest = math.tau - 2 * half
    back = [
        start + cmath.rect(start_radius, heading + half + rest * step / steps)
        for step in range(steps + 1)
    ]
    return (*front, *back)


def _smooth(corners: Sequence[complex]) -> Outline:
    """Return a smooth closed curve through *corners*."""
    path = [(index / len(corners), corner) for index, corner in enumerate(corners)]
    steps = len(corners) * _SMOOTHNESS
    return tuple(along(path, step / steps) for step in range(steps))


def _between(start: complex, end: complex, part: float) -> complex:
    return start + (end - start) * part


def _unit(vector: complex) -> complex:
    return vector / abs(vector)
