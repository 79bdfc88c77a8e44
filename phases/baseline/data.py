"""A person's `.npz` of real inputs: which form it has, what it was taken for, and everything that is wrong with it.

The forms are those of `phases.baseline.data_forms`. Nothing is guessed: what was understood, cast or left out is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.io import DEFAULT_MAX_BYTES, read_npz
from phases.baseline.data_forms import DataFile, InputSpec, array_name, eval_name, read_form, text, turned
from phases.baseline.preprocessing import Preprocessing
from phases.state import sha256_file

UNNAMED = "?"
"""An open dimension without a name: two of them are two dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Feeds in the form (F, *shape), in the dtypes that the model takes, finite, F >= 1.

    Attributes:
        path: file as given.
        sha256: of the file.
        feeds: calibration and validation inputs by input name.
        eval_feeds: labelled evaluation inputs (`x_eval`), or None.
        labels: int64 (F, ...) of `eval_feeds` where there are any, else of `feeds`; None without labels.
        understood: how each array was read, in words.
        notes: casts, arrays left out, feeds left out.
    """

    path: str
    sha256: str
    feeds: Mapping[str, NDArray[Any]]
    eval_feeds: Mapping[str, NDArray[Any]] | None
    labels: NDArray[np.int64] | None
    understood: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def samples(self) -> int:
        """Number of calibration feeds."""
        return int(next(iter(self.feeds.values())).shape[0])

    @property
    def evaluation(self) -> Mapping[str, NDArray[Any]]:
        """The feeds to judge accuracy on: those that the labels belong to, else the calibration feeds."""
        return self.feeds if self.eval_feeds is None else self.eval_feeds


def open_data(path: Path | str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> DataFile:
    """Read the file once; RefusedError where it is no plain `.npz` of arrays or holds none."""
    digest = _digest(Path(path))
    arrays = read_npz(path, max_bytes=max_bytes)
    if not arrays:
        raise RefusedError(
            (Problem(code="DATA-EMPTY", where=str(path), what="holds no arrays", expected="real inputs"),)
        )
    return DataFile(str(path), digest, arrays)


def _digest(path: Path) -> str:
    """The sha256 of a file before it is read: one that changes meanwhile is then STALE for every reader of the port."""
    try:
        return sha256_file(path.resolve()) if path.is_file() else ""
    except OSError:
        return ""  # the reader says what is wrong with it


def infer_shapes(
    data: DataFile | Path | str,
    inputs: tuple[InputSpec, ...],
    *,
    preprocessing: Mapping[str, Preprocessing] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Fixed shapes of the inputs that have open dimensions, from the data.

    Args:
        data: file or path.
        inputs: the model's inputs; fix dimensions that the person gave with `--shape` before.
        preprocessing: what `port.toml` declares, per input (the layout counts here).

    Returns:
        Shape by input name, only inputs with open dimensions.

    Raises:
        RefusedError: an array is missing, does not fit or can be read in two ways, or one symbol gets two sizes.
    """
    file = data if isinstance(data, DataFile) else open_data(data)
    problems: list[Problem] = []
    shapes: dict[str, tuple[int, ...]] = {}
    symbols: dict[str, tuple[int, str]] = {}
    for spec in inputs:
        name, _, dims = spec
        if not any(isinstance(d, str) for d in dims):
            continue
        key = array_name(file, spec[0], len(inputs), "", problems)
        if key is None:
            continue
        shape = turned(file.arrays[key], (preprocessing or {}).get(name)).shape
        reading = read_form(file, key, spec, shape)
        if isinstance(reading, Problem):
            problems.append(reading)
            continue
        shapes[name] = reading.shape
        for dim, size in zip(dims, reading.shape, strict=True):
            if not isinstance(dim, str) or dim in ("", UNNAMED):
                continue
            first = symbols.setdefault(dim, (size, name))
            if first[0] != size:
                what = f"dimension {dim!r} gets two sizes"
                expected, got = f"{first[0]} as in input {first[1]!r}", str(size)
                where = f"{file.path}: array {key!r}"
                problems.append(Problem(code="DATA-SYMBOL", where=where, what=what, expected=expected, got=got))
    if problems:
        raise RefusedError(tuple(problems))
    return shapes


def load_data(
    data: DataFile | Path | str,
    inputs: tuple[InputSpec, ...],
    *,
    max_samples: int | None = None,
    preprocessing: Mapping[str, Preprocessing] | None = None,
    labels: str | None = None,
) -> Data:
    """Feeds, evaluation feeds and labels of a data file, checked against the model's inputs.

    Args:
        data: file or path.
        inputs: name, dtype in numpy's words and fixed shape of each model input.
        max_samples: keep the first feeds only.
        preprocessing: what `port.toml` declares, per input.
        labels: name of the array with the class numbers; None = `y_eval` or `y`.

    Returns:
        The data.

    Raises:
        RefusedError: all problems of the file in one report.
    """
    file = data if isinstance(data, DataFile) else open_data(data)
    loader = _Loader(file, inputs, preprocessing or {}, max_samples, labels)
    loaded = loader.run()
    if loader.problems:
        raise RefusedError(tuple(loader.problems))
    return loaded


class _Loader:
    """Collects problems, words and notes while the arrays of one file are taken in."""

    def __init__(
        self,
        file: DataFile,
        inputs: tuple[InputSpec, ...],
        preprocessing: Mapping[str, Preprocessing],
        max_samples: int | None,
        labels: str | None,
    ) -> None:
        self.file = file
        self.inputs = inputs
        self.preprocessing = preprocessing
        self.max_samples = max_samples
        self.labels = labels
        self.problems: list[Problem] = []
        self.understood: list[str] = []
        self.notes: list[str] = []
        self.used: set[str] = set()

    def run(self) -> Data:
        names = {name for name, _, _ in self.inputs}
        feeds = self._feeds("")
        has_eval = any(eval_name(self.file, n, len(names)) for n in names)
        label_key = self._label_key(names)
        use_eval = has_eval and label_key is not None and label_key.endswith("_eval")
        if has_eval and not use_eval:
            self.notes.append("evaluation inputs are left out: they have no labels y_eval")
        eval_feeds = self._feeds("_eval") if use_eval else None
        judged = feeds if eval_feeds is None else eval_feeds
        labels = self._labels(label_key, judged) if label_key else None
        extra = sorted(set(self.file.arrays) - self.used)
        if extra:
            self.notes.append(
                "arrays that belong to no input are left out: " + ", ".join(repr(e[:40]) for e in extra[:10])
            )
        return Data(
            path=self.file.path,
            sha256=self.file.sha256,
            feeds=self._limited(feeds, "calibration"),
            eval_feeds=None if eval_feeds is None else self._limited(eval_feeds, "evaluation"),
            labels=None if labels is None else labels[: self.max_samples],
            understood=tuple(self.understood),
            notes=tuple(self.notes),
        )

    def _label_key(self, inputs: set[str]) -> str | None:
        wanted = ("y_eval", "y") if self.labels is None else (self.labels,)
        key = next((k for k in wanted if k in self.file.arrays and k not in inputs), None)
        if key is None and self.labels is not None:
            has = ", ".join(repr(k[:40]) for k in list(self.file.arrays)[:10])
            what = "no array of this name for the labels"
            self._problem("DATA-LABELS", "labels", what, expected=repr(self.labels), got=has)
        return key

    def _limited(self, feeds: dict[str, NDArray[Any]], what: str) -> dict[str, NDArray[Any]]:
        count = next(iter(feeds.values())).shape[0] if feeds else 0
        if self.max_samples is None or count <= self.max_samples:
            return feeds
        self.notes.append(f"the first {self.max_samples} of {count} {what} feeds are used")
        return {name: array[: self.max_samples] for name, array in feeds.items()}

    def _feeds(self, suffix: str) -> dict[str, NDArray[Any]]:
        feeds: dict[str, NDArray[Any]] = {}
        for spec in self.inputs:
            key = array_name(self.file, spec[0], len(self.inputs), suffix, self.problems)
            if key is None:
                continue
            self.used.add(key)
            array = self._one(key, spec)
            if array is not None:
                feeds[spec[0]] = array
        counts = {name: array.shape[0] for name, array in feeds.items()}
        if len(set(counts.values())) > 1:
            got = ", ".join(f"{name}: {count}" for name, count in counts.items())
            self._problem(
                "DATA-COUNT", "inputs", "the inputs have different numbers of feeds", expected="one number", got=got
            )
        return feeds

    def _one(self, key: str, spec: InputSpec) -> NDArray[Any] | None:
        name, dtype, _ = spec
        declared = self.preprocessing.get(name)
        array = turned(self.file.arrays[key], declared)
        reading = read_form(self.file, key, spec, array.shape)
        if isinstance(reading, Problem):
            self.problems.append(reading)
            return None
        feeds = array.reshape(-1, *reading.shape) if array.size else array
        if feeds.size == 0:
            what = "an array without elements"
            self._problem("DATA-EMPTY", f"array {key!r}", what, expected="at least one feed", got=str(array.shape))
            return None
        words = {"feed": "feed form", "batch": "batch form", "single": "a single feed"}[reading.form]
        self.understood.append(f"{key}: {words}: {feeds.shape[0]} feeds of {text(reading.shape)}")
        values = self._values(key, feeds, np.dtype(dtype), declared)
        return None if values is None else np.ascontiguousarray(values)

    def _values(
        self, key: str, feeds: NDArray[Any], dtype: np.dtype[Any], declared: Preprocessing | None
    ) -> NDArray[Any] | None:
        where = f"array {key!r}"
        if feeds.dtype.kind not in "iuf":
            self._problem("DATA-DTYPE", where, "not numbers", expected=dtype.name, got=str(feeds.dtype))
            return None
        if feeds.dtype.kind == "f" and not self._finite(where, feeds):
            return None
        if dtype.kind == "f":
            return self._to_float(where, key, feeds, dtype, declared)
        return self._to_integer(where, key, feeds, dtype)

    def _finite(self, where: str, feeds: NDArray[Any]) -> bool:
        wrong = ~np.isfinite(feeds)
        if not wrong.any():
            return True
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        got = f"{int(wrong.sum())} of {feeds.size}, the first at {list(index)}: {feeds[index]}"
        self._problem("DATA-NOT-FINITE", where, "NaN or infinite values", expected="finite numbers", got=got)
        return False

    def _to_float(
        self, where: str, key: str, feeds: NDArray[Any], dtype: np.dtype[Any], declared: Preprocessing | None
    ) -> NDArray[Any] | None:
        if feeds.dtype.kind in "iu":
            return self._from_raw(where, key, feeds, dtype, declared)
        if feeds.dtype == dtype:
            return feeds
        with np.errstate(over="ignore"):
            cast = feeds.astype(dtype)
        if not self._finite(f"{where} as {dtype.name}", cast):
            return None
        self.notes.append(f"{key}: {feeds.dtype.name} values rounded to {dtype.name}")
        return cast

    def _from_raw(
        self, where: str, key: str, feeds: NDArray[Any], dtype: np.dtype[Any], declared: Preprocessing | None
    ) -> NDArray[Any] | None:
        got = f"{feeds.dtype.name} values from {feeds.min()} to {feeds.max()}"
        if declared is None:
            what = "raw integers for an input of real values"
            remedy = (
                f"store what the model is fed, or declare mean and scale under [preprocessing] in port.toml ({key})"
            )
            self._problem(
                "DATA-DTYPE", where, what, expected=f"{dtype.name} values as the model is fed", got=got, remedy=remedy
            )
            return None
        try:
            values = declared.apply(feeds).astype(dtype)
        except ValueError as error:
            self._problem("DATA-PREPROCESSING", where, f"the declared preprocessing does not fit: {error}")
            return None
        low, high = declared.declared_range()
        self.notes.append(f"{key}: {got} preprocessed as port.toml declares, range {low:g} to {high:g}")
        return values

    def _to_integer(self, where: str, key: str, feeds: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
        if feeds.dtype == dtype:
            return feeds
        limits = np.iinfo(dtype)
        low, high = feeds.min(), feeds.max()
        if feeds.dtype.kind == "f" or int(low) < limits.min or int(high) > limits.max:
            got = f"{feeds.dtype.name} values from {low} to {high}"
            expected = f"{dtype.name} ({limits.min} to {limits.max})"
            self._problem("DATA-DTYPE", where, "values of another type", expected=expected, got=got)
            return None
        self.notes.append(f"{key}: {feeds.dtype.name} values taken as {dtype.name}, none changed")
        return feeds.astype(dtype)

    def _labels(self, key: str, judged: Mapping[str, NDArray[Any]]) -> NDArray[np.int64] | None:
        self.used.add(key)
        labels = self.file.arrays[key]
        where = f"labels {key!r}"
        integral = labels.dtype.kind in "iu" or (labels.dtype.kind == "f" and bool(np.all(labels == np.rint(labels))))
        if not integral or not labels.size or labels.min() < 0 or labels.max() > 2**53:
            got = f"{labels.dtype}, shape {labels.shape}"
            self._problem("DATA-LABELS", where, "not class numbers", expected="integers from 0", got=got)
            return None
        count = next(iter(judged.values())).shape[0] if judged else labels.shape[0] if labels.ndim else 0
        if labels.ndim == 0 or labels.shape[0] != count:
            got = f"shape {labels.shape}"
            remedy = "one class number per feed; a one-hot array has to be turned into class numbers"
            self._problem(
                "DATA-LABELS",
                where,
                "labels do not match the feeds",
                expected=f"{count} labels",
                got=got,
                remedy=remedy,
            )
            return None
        self.understood.append(f"{key}: {count} labels")
        return labels.astype(np.int64)

    def _problem(
        self, code: str, where: str, what: str, *, expected: str = "", got: str = "", remedy: str = ""
    ) -> None:
        at = f"{self.file.path}: {where}"
        self.problems.append(Problem(code=code, where=at, what=what, expected=expected, got=got, remedy=remedy))
