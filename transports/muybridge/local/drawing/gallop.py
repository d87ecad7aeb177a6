"""How a horse gallops: where its joints are at each moment of a stride.

Lengths are in withers: 1.0 is the height of the horse's withers above the ground. A point is a
complex number, its real part forward and its imaginary part up; 0 is on the ground under the
middle of the trunk, and moves along with the horse. A phase is a part of a stride, from 0.0, when
the first hind hoof touches the ground, to 1.0, when it does so again.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import attrs

Curve = Sequence[tuple[float, complex]]
"""Values by phase, in order, around one stride."""

STANCE = 0.24
"""The part of a stride for which each hoof is on the ground."""

STROKE = 0.90
"""How far the trunk travels over a hoof that is on the ground."""

STRIDE = STROKE / STANCE
"""How far the horse travels in one stride."""

FAR_HIND, NEAR_HIND, FAR_FORE, NEAR_FORE = 0.0, 0.11, 0.33, 0.50
"""Phases at which the hooves touch the ground, one after another.

The last leaves it at 0.74. From there to 1.0 the horse is in the air, its legs gathered beneath it:
the moment that Muybridge's plates were made to prove.
"""

FOOTFALLS = (FAR_HIND, NEAR_HIND, FAR_FORE, NEAR_FORE)

_DIGIT = 0.135
"""From the fetlock to the tip of the toe."""

_FEMUR, _TIBIA, _HIND_CANNON = 0.26, 0.32, 0.27
_FOREARM, _FORE_CANNON = 0.27, 0.205

_FLAT_SLOPE = 52.0
"""Degrees by which the digit can slope down before the heel must leave the ground."""

_HIP = -0.36 + 0.80j
_SHOULDER = 0.40 + 0.74j
_ELBOW = 0.27 + 0.58j


@attrs.frozen
class Leg:
    """One leg's joints, from the trunk down.

    Args:
        root: Hip, or point of the shoulder.
        upper: Stifle, or elbow.
        middle: Hock, or knee.
        fetlock: Fetlock.
        toe: Tip of the hoof.
        sole: Angle between the sole and the ground in radians, positive with the heel raised.
    """

    root: complex
    upper: complex
    middle: complex
    fetlock: complex
    toe: complex
    sole: float


@attrs.frozen(kw_only=True)
class Pose:
    """The whole horse at one moment.

    Args:
        phase: Phase of the stride.
        lift: Where the trunk's middle is, relative to a standing horse.
        pitch: Angle of the trunk in radians, positive with the forehand raised.
        tuck: How far the croup is drawn under, from -1.0 (stretched) to 1.0 (gathered).
        neck: Angle by which the neck is raised, in radians.
        far_hind: The leg that touches the ground first.
        near_hind: The leg that does so second.
        far_fore: The leg that does so third.
        near_fore: The leg that does so last.
    """

    phase: float
    lift: complex
    pitch: float
    tuck: float
    neck: float
    far_hind: Leg
    near_hind: Leg
    far_fore: Leg
    near_fore: Leg

    def on_trunk(self, point: complex) -> complex:
        """Return where *point* of the standing horse's trunk is in this pose."""
        return _on_trunk(point, self.lift, self.pitch)


def gallop(phase: float) -> Pose:
    """Return the horse's pose at *phase*, which may be any number of strides."""
    phase %= 1.0
    lift = -0.055j + 0.022j * _wave(phase, 0.87)
    pitch = -0.005 + 0.055 * _wave(phase, 0.10)
    tuck = _wave(phase, 0.95)
    hip = _on_trunk(_HIP + 0.03 * tuck, lift, pitch)
    shoulder = _on_trunk(_SHOULDER, lift, pitch)
    elbow = _on_trunk(_ELBOW, lift, pitch)
    return Pose(
        phase=phase,
        lift=lift,
        pitch=pitch,
        tuck=tuck,
        neck=0.09 * _wave(phase, 0.06),
        far_hind=_hind_leg(hip, phase - FAR_HIND),
        near_hind=_hind_leg(hip, phase - NEAR_HIND),
        far_fore=_fore_leg(shoulder, elbow, phase - FAR_FORE),
        near_fore=_fore_leg(shoulder, elbow, phase - NEAR_FORE),
    )


def along(path: Curve, phase: float) -> complex:
    """Return the value at *phase* on the smooth closed curve through *path*."""
    phase %= 1.0
    after = next((i for i, (at, _) in enumerate(path) if at > phase), len(path))
    (t0, p0), (t1, p1), (t2, p2), (t3, p3) = (
        _around(path, index) for index in range(after - 2, after + 2)
    )
    start_slope = (p2 - p0) / (t2 - t0)
    end_slope = (p3 - p1) / (t3 - t1)
    span = t2 - t1
    part = (phase - t1) / span
    return (
        p1
        + part * span * start_slope
        + part**2 * (3 * (p2 - p1) - span * (2 * start_slope + end_slope))
        + part**3 * (2 * (p1 - p2) + span * (start_slope + end_slope))
    )


def _around(path: Curve, index: int) -> tuple[float, complex]:
    turns, place = divmod(index, len(path))
    phase, value = path[place]
    return phase + turns, value


def _wave(phase: float, crest: float) -> float:
    return math.cos(math.tau * (phase - crest))


def _on_trunk(point: complex, lift: complex, pitch: float) -> complex:
    middle = 0.80j
    return middle + lift + (point - middle) * cmath.rect(1.0, pitch)


def _stance(reach: float, slopes: Sequence[float]) -> tuple[Curve, Curve]:
    """Return the fetlock's path and the digit's slope while the hoof is on the ground.

    Args:
        reach: How far forward the toe touches the ground.
        slopes: Degrees by which the digit slopes down, evenly spaced over the stance. Above 90
            the fetlock is in front of the toe, which is about to leave the ground.
    """
    fetlocks: list[tuple[float, complex]] = []
    digits: list[tuple[float, complex]] = []
    for step, slope in enumerate(slopes):
        part = step / (len(slopes) - 1)
        fetlocks.append((part * STANCE, reach - part * STROKE - _digit(slope)))
        digits.append((part * STANCE, slope))
    return fetlocks, digits


def _digit(slope: float) -> complex:
    return cmath.rect(_DIGIT, -math.radians(slope))


def _hind_leg(hip: complex, phase: float) -> Leg:
    fetlock = along(_HIND_FETLOCK, phase)
    slope = along(_HIND_SLOPE, phase).real
    stifle, hock = _hind_joints(hip, fetlock)
    return _leg(hip, stifle, hock, fetlock, slope)


def _fore_leg(shoulder: complex, elbow: complex, phase: float) -> Leg:
    fetlock = along(_FORE_FETLOCK, phase)
    slope = along(_FORE_SLOPE, phase).real
    swing = along(_ELBOW_SWING, phase)
    elbow += swing
    reach = fetlock - elbow
    longest = 0.995 * (_FOREARM + _FORE_CANNON)
    if abs(reach) > longest:
        # The shoulder blade slides on the ribs, so that the elbow follows a hoof on the ground.
        elbow = fetlock - reach / abs(reach) * longest
        reach = fetlock - elbow
    bend = _corner(abs(reach), _FOREARM, _FORE_CANNON)
    knee = elbow + reach / abs(reach) * cmath.rect(_FOREARM, bend)
    return _leg(shoulder + 0.4 * swing, elbow, knee, fetlock, slope)


def _leg(root: complex, upper: complex, middle: complex, fetlock: complex, slope: float) -> Leg:
    heel_raised = math.radians(max(0.0, slope - _FLAT_SLOPE))
    return Leg(root, upper, middle, fetlock, fetlock + _digit(slope), heel_raised)


def _hind_joints(hip: complex, fetlock: complex) -> tuple[complex, complex]:
    """Return stifle and hock, which a horse can only bend together."""
    reach = fetlock - hip
    straight, bent = 0.0, 1.0
    for _ in range(24):
        bend = (straight + bent) / 2
        if abs(_bent_hind(bend)[-1]) > abs(reach):
            straight = bend
        else:
            bent = bend
    stifle, hock, end = _bent_hind((straight + bent) / 2)
    turn = reach / abs(reach) * abs(end) / end
    return hip + stifle * turn, hip + hock * turn


def _bent_hind(bend: float) -> tuple[complex, complex, complex]:
    stifle = _FEMUR + 0j
    tibia_turn = cmath.rect(1.0, -math.radians(16.0 + 104.0 * bend))
    hock = stifle + _TIBIA * tibia_turn
    cannon_turn = tibia_turn * cmath.rect(1.0, math.radians(14.0 + 106.0 * bend))
    return stifle, hock, hock + _HIND_CANNON * cannon_turn


def _corner(opposite_reach: float, near: float, far: float) -> float:
    """Return the angle at the near end of a triangle with these three sides."""
    cosine = (near**2 + opposite_reach**2 - far**2) / (2 * near * opposite_reach)
    return math.acos(max(-1.0, min(1.0, cosine)))


_hind_stance, _hind_slope_stance = _stance(0.12, (46.0, 38.0, 37.0, 56.0, 104.0))
_fore_stance, _fore_slope_stance = _stance(0.74, (46.0, 37.0, 35.0, 52.0, 100.0))

# In the air, the legs move so that they look right next to Muybridge's plates.

_HIND_FETLOCK: Curve = (
    *_hind_stance,
    (0.33, -0.92 + 0.25j),
    (0.44, -0.86 + 0.36j),
    (0.57, -0.58 + 0.37j),
    (0.72, -0.22 + 0.31j),
    (0.85, 0.05 + 0.25j),
    (0.94, 0.08 + 0.17j),
)
_HIND_SLOPE: Curve = (
    *_hind_slope_stance,
    (0.33, 145.0),
    (0.44, 165.0),
    (0.57, 140.0),
    (0.72, 100.0),
    (0.85, 65.0),
    (0.94, 40.0),
)
_FORE_FETLOCK: Curve = (
    *_fore_stance,
    (0.32, -0.20 + 0.27j),
    (0.44, -0.05 + 0.40j),
    (0.57, 0.18 + 0.43j),
    (0.70, 0.46 + 0.40j),
    (0.83, 0.74 + 0.36j),
    (0.93, 0.74 + 0.20j),
)
_FORE_SLOPE: Curve = (
    *_fore_slope_stance,
    (0.32, 160.0),
    (0.44, 200.0),
    (0.57, 195.0),
    (0.70, 130.0),
    (0.83, 65.0),
    (0.93, 40.0),
)
_ELBOW_SWING: Curve = (
    (0.0, 0.08 + 0.03j),
    (0.12, 0.0 - 0.01j),
    (0.24, -0.08 - 0.01j),
    (0.44, -0.03 + 0.02j),
    (0.70, 0.06 + 0.05j),
    (0.86, 0.11 + 0.06j),
)
