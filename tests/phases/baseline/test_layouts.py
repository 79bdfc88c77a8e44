"""Places of packed elements, written down apart from the transforms."""

import numpy as np
import pytest

from manifest import layout as transforms
from manifest.layout import TRANSFORMS, Transform
from manifest.model import Layout
from phases.baseline.layouts import PLACES, in_place, returns

FORMS = {
    "identity": ((3, 4), ()),
    "conv_blocks": ((9, 5, 3, 2), (8, 4)),
    "grouped_conv_blocks": ((6, 5, 3, 2), (2, 8, 4)),
    "depthwise_blocks": ((9, 1, 3, 3), (8,)),
    "dense_kn_blocks": ((9, 13), (8, 4)),
    "dense_nk_blocks": ((13, 9), (4, 8)),
    "row_blocks": ((2, 9, 3, 4), (8,)),
}


def form(name: str) -> tuple[Layout, np.ndarray]:
    shape, block = FORMS[name]
    array = np.arange(np.prod(shape)).reshape(shape)
    return Layout(tensor="t", logical="", packed=name, block=block), array


def test_every_transform_has_its_places() -> None:
    assert set(PLACES) == set(TRANSFORMS) == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_sound_transforms_return_and_stand_in_place(name: str) -> None:
    layout, array = form(name)
    assert returns(layout, array)
    assert in_place(layout, array)


@pytest.mark.parametrize("name", [n for n in FORMS if n != "identity"])
def test_two_exchanged_axes_undo_themselves_on_the_way_back_but_stand_elsewhere(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = TRANSFORMS[name]
    order = sound.order[:-2] + sound.order[-1] + sound.order[-2]
    swapped = Transform(axes=sound.axes, order=order, grouped=sound.grouped)
    monkeypatch.setattr(transforms, "TRANSFORMS", {**TRANSFORMS, name: swapped})
    layout, array = form(name)
    assert returns(layout, array)
    assert not in_place(layout, array)


def test_an_unknown_transform_is_not_in_place() -> None:
    layout, array = form("identity")
    assert not in_place(Layout(tensor="t", logical="", packed="spiral"), array)
    assert in_place(layout, np.array(3))
