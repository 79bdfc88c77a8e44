"""What quantisation costs on real data: accuracy with labels, SQNR, cosine and top-1 agreement against float.

Why a meter and not a function: the tensors of all feeds of a large model do not fit into memory at once, so the
caller adds them piece by piece and the sums are kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.model import Manifest, Op
from oracle.evidence import AccuracyEvidence
from phases.baseline.ranges import real_values
from phases.declared import Thresholds

MAX_DB: Final = 200.0
"""Figures stay finite: an exact copy has this SQNR."""
WORST_LAYERS: Final = 8
CLIFF_DB: Final = 10.0
"""A layer below this SQNR that loses as much against its inputs is a cliff."""
MIN_LEVELS: Final = 4
"""A weight channel that keeps fewer codes than this beside 0 has lost its values to a scale made for others."""
FLOAT_MODEL: Final = "float model"
OWN_MEANING: Final = "the file's own float meaning (Q/DQ removed)"


@dataclass(slots=True)
class Sums:
    """Running sums of a float tensor and its quantised twin."""

    signal: float = 0.0
    noise: float = 0.0
    dot: float = 0.0
    other: float = 0.0

    def add(self, reference: NDArray[Any], got: NDArray[Any]) -> None:
        """Take in arrays of the same number of elements."""
        a, b = reference.astype(np.float64).ravel(), got.astype(np.float64).ravel()
        with np.errstate(invalid="ignore", over="ignore"):
            difference = a - b
            self.signal += float(a @ a)
            self.noise += float(difference @ difference)
            self.dot += float(a @ b)
            self.other += float(b @ b)

    @property
    def sqnr_db(self) -> float:
        """Signal to quantisation noise in dB, within +-MAX_DB; -MAX_DB where any value is not finite."""
        if not (math.isfinite(self.noise) and math.isfinite(self.signal)):
            return -MAX_DB
        if self.noise == 0.0:
            return MAX_DB
        if self.signal == 0.0:
            return -MAX_DB
        return max(-MAX_DB, min(MAX_DB, 10.0 * math.log10(self.signal / self.noise)))

    @property
    def cosine(self) -> float:
        """Cosine of the angle between both; 1 where both are 0, 0 where any value is not finite."""
        if not (math.isfinite(self.dot) and math.isfinite(self.noise)):
            return 0.0
        size = math.sqrt(self.signal) * math.sqrt(self.other)
        if size == 0.0:
            return 1.0 if self.signal == self.other else 0.0
        return max(-1.0, min(1.0, self.dot / size))


@dataclass(slots=True)
class AccuracyMeter:
    """Adds up feeds and gives the evidence.

    Attributes:
        manifest: of the quantised model.
        layers: integer tensor -> name of the float tensor that it stands for, where there is one.
        limits: what the person accepts.
        against: what the float figures are.
    """

    manifest: Manifest
    layers: Mapping[str, str]
    limits: Thresholds = field(default_factory=Thresholds)
    against: str = FLOAT_MODEL
    samples: int = 0
    _outputs: dict[str, Sums] = field(default_factory=dict)
    _layers: dict[str, Sums] = field(default_factory=dict)
    _labels: list[NDArray[np.int64]] = field(default_factory=list)
    _correct: int = 0
    _float_correct: int = 0
    _judged: int = 0
    _agreeing: int = 0
    _compared: int = 0
    _floats: bool = False

    def add(
        self,
        tensors: Mapping[str, NDArray[Any]],
        floats: Mapping[str, NDArray[Any]] | None = None,
        labels: NDArray[np.int64] | None = None,
    ) -> None:
        """Take in some feeds.

        Args:
            tensors: what the oracle returned, (F, *shape) by tensor name; the graph outputs are among them.
            floats: the float model's tensors on the same feeds by ONNX name, graph outputs among them, or None.
            labels: class numbers of these feeds, or None.

        Raises:
            RefusedError: labels that do not fit the first output.
        """
        outputs = self.manifest.model.outputs
        real = {name: real_values(self.manifest.tensor(name), tensors[name]) for name in outputs}
        first = real[outputs[0]]
        self.samples += int(first.shape[0])
        classes = class_numbers(first)
        float_classes = None
        if floats is not None:
            self._add_floats(tensors, real, floats)
            self._floats = floats[outputs[0]].size == first.size
            float_classes = class_numbers(floats[outputs[0]].reshape(first.shape)) if self._floats else None
        classifies = labels is not None or _long_axes(first.shape) == 1
        if classes is not None and float_classes is not None and classifies:
            self._agreeing += int(np.count_nonzero(classes == float_classes))
            self._compared += classes.size
        if labels is not None:
            self._add_labels(labels, classes, float_classes, first.shape)

    def _add_floats(
        self, tensors: Mapping[str, NDArray[Any]], real: Mapping[str, NDArray[Any]], floats: Mapping[str, NDArray[Any]]
    ) -> None:
        for name, values in real.items():
            if floats[name].size != values.size:
                continue  # BL009 names it; nothing can be said about its accuracy
            self._outputs.setdefault(name, Sums()).add(floats[name], values)
        for name, float_name in self.layers.items():
            codes, reference = tensors.get(name), floats.get(float_name)
            if codes is not None and reference is not None and reference.shape == codes.shape:
                values = real_values(self.manifest.tensor(name), codes)
                self._layers.setdefault(name, Sums()).add(reference, values)

    def _add_labels(
        self,
        labels: NDArray[np.int64],
        classes: NDArray[np.int64] | None,
        float_classes: NDArray[np.int64] | None,
        shape: tuple[int, ...],
    ) -> None:
        if classes is None:
            return
        count = _class_count(shape)
        if labels.size != classes.size or int(labels.max()) >= count:
            got = f"labels of shape {labels.shape} up to {int(labels.max())}"
            expected = f"{classes.size} class numbers below {count}"
            what = f"labels do not fit output {self.manifest.model.outputs[0]!r}"
            raise RefusedError((Problem(code="DATA-LABELS", where="data", what=what, expected=expected, got=got),))
        wanted = labels.reshape(classes.shape)
        self._labels.append(wanted.ravel())
        self._judged += classes.size
        self._correct += int(np.count_nonzero(classes == wanted))
        if float_classes is not None:
            self._float_correct += int(np.count_nonzero(float_classes == wanted))

    def evidence(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> AccuracyEvidence | None:
        """The evidence, or None where nothing was added.

        Args:
            arrays: the manifest's constants, to look for weight channels that lost their levels.
        """
        if not self.samples:
            return None
        judged, compared = self._judged, self._compared
        labels = np.concatenate(self._labels) if self._labels else None
        layers = {name: sums.sqnr_db for name, sums in self._layers.items()}
        worst = sorted(layers.items(), key=lambda item: (item[1], item[0]))[:WORST_LAYERS]
        outputs = list(self._outputs.values())
        weak = weight_cliffs(self.manifest, arrays) if arrays is not None else ()
        return AccuracyEvidence(
            samples=self.samples,
            labels=labels is not None,
            accuracy=self._correct / judged if judged else None,
            float_accuracy=self._float_correct / judged if judged and self._floats else None,
            sqnr_db=min((s.sqnr_db for s in outputs), default=None),
            cosine=min((s.cosine for s in outputs), default=None),
            top1_agreement=self._agreeing / compared if compared else None,
            max_accuracy_drop=self.limits.max_accuracy_drop,
            min_sqnr_db=self.limits.min_sqnr_db,
            min_top1_agreement=self.limits.min_top1_agreement,
            worst_layers=tuple(worst),
            cliffs=(*layer_cliffs(self.manifest, layers), *weak),
            majority_share=None if labels is None else float(np.bincount(labels).max() / labels.size),
            against=self.against if self._floats else "labels" if labels is not None else "",
        )


def _class_axis(shape: tuple[int, ...]) -> int | None:
    """Axis of the classes in (F, *shape): the last axis longer than 1; None for a single value."""
    longer = [axis for axis in range(1, len(shape)) if shape[axis] > 1]
    return longer[-1] if longer else None


def _long_axes(shape: tuple[int, ...]) -> int:
    """Axes of a feed's output longer than 1: with several and no labels nobody knows that it classifies."""
    return sum(size > 1 for size in shape[1:])


def _class_count(shape: tuple[int, ...]) -> int:
    axis = _class_axis(shape)
    return 1 if axis is None else shape[axis]


def class_numbers(output: NDArray[Any]) -> NDArray[np.int64] | None:
    """Argmax over the class axis.

    Args:
        output: (F, *shape) real values; the last axis longer than 1 has the classes ([1, C], [1, C, 1, 1], [1, T, C]).

    Returns:
        int64 (F, rest), or None for an output of one value, which has no classes.
    """
    axis = _class_axis(output.shape)
    if axis is None:
        return None
    best: NDArray[np.int64] = np.argmax(output, axis=axis).astype(np.int64)
    return best.reshape(best.shape[0], -1)


def layer_cliffs(manifest: Manifest, layers: Mapping[str, float]) -> tuple[str, ...]:
    """Layers that are below CLIFF_DB and lose at least as much against the worst of their inputs, in words.

    Args:
        manifest: for the ops.
        layers: SQNR in dB by integer tensor.
    """
    found = []
    for op in manifest.ops:
        for output in op.outputs:
            after = layers.get(output)
            known = [layers[name] for name in op.inputs if name in layers]
            before = min(known, default=MAX_DB)
            if after is not None and after < CLIFF_DB and before - after >= CLIFF_DB:
                source = f"from {before:.1f} dB" if known else "at once"
                found.append(f"{output} ({op.type} {op.name}): SQNR falls {source} to {after:.1f} dB")
    return tuple(found)


def weight_cliffs(manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Ops whose per-tensor weight scale leaves some output channels fewer than MIN_LEVELS codes, in words.

    Args:
        manifest: for the ops.
        arrays: the manifest's constants by key.
    """
    found = []
    for op in manifest.ops:
        weak = _weak_channels(manifest, op, arrays)
        if weak is not None and weak[0]:
            words = (
                f"{weak[0]} of {weak[1]} output channels keep fewer than {MIN_LEVELS} levels of weight {op.inputs[1]}"
            )
            found.append(f"{op.type} {op.name}: {words}: per-tensor scale")
    return tuple(found)


def _weak_channels(manifest: Manifest, op: Op, arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int] | None:
    if op.type not in {"Conv", "Gemm", "MatMul"}:
        return None
    weight = manifest.by_name().get(op.inputs[1])
    if weight is None or weight.array is None or weight.quant is None or len(weight.quant.scales) > 1:
        return None
    codes = arrays[weight.array].astype(np.int64) - weight.quant.zero_points[0]
    last = op.type == "MatMul" or (op.type == "Gemm" and not op.attributes.get("transB", 0))
    rows = np.moveaxis(codes, -1 if last else 0, 0).reshape(codes.shape[-1 if last else 0], -1)
    largest = np.abs(rows).max(axis=1)
    return int(np.count_nonzero((largest > 0) & (largest < MIN_LEVELS))), rows.shape[0]
