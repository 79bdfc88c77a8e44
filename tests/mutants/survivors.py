"""Mutants of what the person gives, and those that no baseline gate can notice, with the unit test that does."""

from typing import Final

from tests.mutants.harness import Mutant, change
from tests.mutants.models import DIGITS

DATA: Final = "phases/baseline/data.py"
NOT_FITTING: Final = "labels or preprocessing do not fit the model"

SURVIVORS: Final = (
    Mutant(
        id="labels-shifted",
        breaks="every feed is given the label of the one before",
        edits=change(
            DATA,
            "        return labels.astype(np.int64)\n",
            "        return np.roll(labels.astype(np.int64), 1)\n",
        ),
        model=DIGITS,
        args=("--max-samples", "64"),
        items=("BL003",),
        words=(NOT_FITTING,),
    ),
    Mutant(
        id="images-turned",
        breaks="images are read with rows and columns exchanged",
        edits=change(
            DATA,
            "return None if values is None else np.ascontiguousarray(values)",
            "return None if values is None else np.ascontiguousarray(values.swapaxes(-1, -2))",
        ),
        model=DIGITS,
        args=("--max-samples", "64"),
        items=("BL003",),
        words=(NOT_FITTING,),
    ),
    Mutant(
        id="other-rounding-mode",
        breaks="`srs` in mode pos_inf drops its ties",
        edits=change(
            "oracle/fixedpoint.py",
            '"pos_inf": lambda: above | tie,',
            '"pos_inf": lambda: above,',
        ),
        model="gemm_shift",
        words=(),
        survives="no manifest asks for this mode: every op states conv_even",
        unit_test="tests/oracle/test_fixedpoint.py",
    ),
)
