"""What changes after a sound run: a file, or the code; `phases check` has to name it."""

from typing import Final

from tests.mutants.arithmetic import CONTRACTION
from tests.mutants.harness import Mutant, change

LATER: Final = (
    Mutant(
        id="data-changed",
        breaks="one bit of the data file changes after the run",
        model="gemm_shift",
        touch="real.npz",
        words=("real.npz: stale: data changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="model-changed",
        breaks="one bit of the model changes after the run",
        model="gemm_shift",
        touch="model.onnx",
        words=("model.onnx: stale: model changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="canary-changed",
        breaks="one bit of the canary changes after the run",
        model="gemm_shift",
        touch="model.port/data/canary.npz",
        words=("data/canary.npz: tampered: changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="weights-changed",
        breaks="one bit of the port's arrays changes after the run",
        model="gemm_shift",
        touch="model.port/tensors.npz",
        words=("tensors.npz: tampered: changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="oracle-broken-later",
        breaks="the bias is dropped from the oracle after a sound run",
        edits=change(
            CONTRACTION,
            "addend = [c << max(s, 0) for c, s in zip(codes, shifts, strict=True)]",
            "addend = [0] * channels",
        ),
        model="conv_shift",
        rerun=True,
        words=("data/canary.npz: rerun: another content", "gates/baseline.json: rerun: another content"),
        exit=3,
    ),
    Mutant(
        id="importer-broken-later",
        breaks="transB is no longer read after a sound run",
        edits=change(
            "manifest/onnx_import/ops/gemm.py",
            '"transB": node.integer("transB", 0),',
            '"transB": 0,',
        ),
        model="gemm_shift",
        rerun=True,
        words=("manifest.json: rerun: another content", "gates/baseline.json: rerun: another content"),
        exit=3,
    ),
)
