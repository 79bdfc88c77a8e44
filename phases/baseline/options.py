"""What phase 1 was asked to do: command line, `port.toml` and the last run, resolved into one frozen value.

Why two entries: `python -m phases.baseline MODEL` starts from the options as given; `python -m phases.baseline PORT`
is a rerun and takes up those of the last run, from `port.json`. In both, the command line rules over `port.toml`,
and `port.toml` over what the last run took from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from checklists.model import Waiver
from manifest.device import DEFAULT_DEVICE, load_device
from manifest.errors import Problem, RefusedError, UpstreamError
from phases.baseline.preprocessing import preprocessing_from
from phases.declared import MAX_DIMENSION, Declared, parse_declared, read_toml
from phases.integrity import inspect, is_port
from phases.pipeline import item_codes, tool_version
from phases.port import read_person
from phases.record import PORT_JSON, PortInfo, Source
from phases.state import PORT_TOML, WAIVERS_TOML
from phases.waivers import parse_waivers

DEFAULT_SEED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line as given; None or () = not given."""

    model: Path
    data: Path | None = None
    out: Path | None = None
    device: str | None = None
    shapes: tuple[str, ...] = ()
    host_ops: bool | None = None
    cuts: tuple[str, ...] = ()
    seed: int | None = None
    max_samples: int | None = None
    is_rerun: bool = field(init=False)
    """Whether an existing port was given instead of a model; as found once, since healing may remove the folder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_rerun", self.model.is_dir())

    @property
    def port(self) -> Path:
        """Where the port goes."""
        if self.is_rerun:
            return self.model
        return self.out if self.out is not None else Path(f"{self.model.stem}.port")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineOptions:
    """One run of phase 1.

    Attributes:
        model: the model file.
        data: the real data, None where there is none.
        out: the port.
        device: name of the device.
        device_from: who said so (`--device`, `port.toml`, `the last run`, `default`).
        shapes: input name -> shape of open dimensions.
        host_ops: unsupported ops may run on the host.
        cuts: tensors at which the person wants a dispatch to end.
        seed: of random inputs.
        max_samples: feeds used at most, None = all.
        declared: content of `port.toml`.
        waivers: content of `waivers.toml`.
        person: the person's own files as read.
        today: the day that waivers are judged by.
        asked: what `port.json` records for a rerun.
        port_base: the folder that relative paths in `port.json` start from: the port, also when `check --rerun`
            computes it elsewhere.
        notes: remarks for the person, one line each.
    """

    model: Path
    data: Path | None
    out: Path
    device: str = DEFAULT_DEVICE
    device_from: str = "default"
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    host_ops: bool = False
    cuts: tuple[str, ...] = ()
    seed: int = DEFAULT_SEED
    max_samples: int | None = None
    declared: Declared = field(default_factory=Declared)
    waivers: tuple[Waiver, ...] = ()
    person: Mapping[str, bytes] = field(default_factory=dict)
    today: date
    asked: Mapping[str, Any] = field(default_factory=dict)
    port_base: Path
    notes: tuple[str, ...] = ()

    @property
    def device_line(self) -> str:
        """The first line of output."""
        if self.device_from == "default":
            return f"device: {self.device} (default; choose another with --device)"
        return f"device: {self.device} (from {self.device_from})"

    def info(
        self, model_sha256: str, data_sha256: str | None = None, external: Mapping[Path, str] | None = None
    ) -> PortInfo:
        """The content of `port.json`.

        Args:
            model_sha256: of the model file's bytes as read.
            data_sha256: of the data file's bytes as read; None = hash the file now.
            external: sha256 by file of the model's external data.
        """
        data = None
        if self.data is not None:
            data = Source.of(self.data, port=self.port_base, sha256=data_sha256)
        return PortInfo(
            tool_version=tool_version(),
            model=Source.of(self.model, port=self.port_base, sha256=model_sha256),
            external=tuple(Source.of(p, port=self.port_base, sha256=sha) for p, sha in (external or {}).items()),
            data=data,
            device=self.device,
            options=self.asked,
        )


def resolve(arguments: Arguments, *, today: date | None = None) -> BaselineOptions:
    """Resolve a command line; the caller is inside `phases.port.writing(arguments.port)`.

    Raises:
        RefusedError: everything that is wrong with command line, `port.toml`, `waivers.toml`, all at once.
        UpstreamError: a rerun of a port whose `port.json` was tampered with.
    """
    return _Resolver(arguments, today or date.today()).run()


class _Resolver:
    """Collects the problems of all sources."""

    def __init__(self, arguments: Arguments, today: date) -> None:
        self.given = arguments
        self.today = today
        self.out = arguments.port
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def run(self) -> BaselineOptions:
        last = self._last()
        asked = dict(last.options) if self.given.is_rerun and last is not None else {}
        person, declared, waivers = self._person()
        model = self._model(last)
        data = self._data(last, asked, declared)
        device, device_from = self._device(asked, declared)
        given_shapes = self._shapes()
        asked_shapes = given_shapes or {k: tuple(v) for k, v in asked.get("shapes", {}).items()}
        given = self.given
        host_ops = given.host_ops if given.host_ops is not None else asked.get("host_ops", False)
        cuts = given.cuts or tuple(asked.get("cuts", ()))
        seed = given.seed if given.seed is not None else asked.get("seed", DEFAULT_SEED)
        max_samples = given.max_samples if given.max_samples is not None else asked.get("max_samples")
        if self.problems:
            raise RefusedError(tuple(self.problems))
        return BaselineOptions(
            model=model,
            data=data,
            out=self.out,
            device=device,
            device_from=device_from,
            shapes={**declared.shapes, **asked_shapes},
            host_ops=host_ops,
            cuts=cuts,
            seed=seed,
            max_samples=max_samples,
            declared=declared,
            waivers=waivers,
            person=person,
            today=self.today,
            asked={
                "data": self.given.data is not None or bool(asked.get("data", False) and data is not None),
                "device": given.device or asked.get("device"),
                "shapes": {name: list(shape) for name, shape in sorted(asked_shapes.items())},
                "host_ops": host_ops,
                "cuts": list(cuts),
                "seed": seed,
                "max_samples": max_samples,
            },
            port_base=self.out,
            notes=tuple(self.notes),
        )

    def _problem(
        self, code: str, where: object, what: str, *, expected: str = "", got: str = "", remedy: str = ""
    ) -> None:
        self.problems.append(Problem(code=code, where=str(where), what=what, expected=expected, got=got, remedy=remedy))

    def _last(self) -> PortInfo | None:
        """What the last run of this port recorded; None on a first run."""
        if not is_port(self.out):
            if self.given.is_rerun:
                remedy = "give a model, or the folder that an earlier run wrote"
                self._problem("PORT-NOT-A-PORT", self.out, "not a port, or no run of it ever ended", remedy=remedy)
            return None
        found = inspect(self.out)
        self.notes += [f"{fault.line()}; this run writes its own files anew" for fault in found.tampered]
        if found.info is None:
            lines = [fault.line() for fault in found.tampered if fault.name == PORT_JSON]
            if self.given.is_rerun:
                raise UpstreamError("\n".join(lines) or f"{self.out}: no earlier run ended; give the model")
            return None
        if not self.given.is_rerun:
            self._same_model(found.info)
        return found.info

    def _same_model(self, last: PortInfo) -> None:
        """A default folder must not replace the port of another model that happens to have the same name."""
        here = Source.of(self.given.model, port=self.out, sha256="-")
        if here.path == last.model.path:
            return
        if self.given.out is None:
            what = "the folder holds the port of another model"
            remedy = "choose another folder, or this one on purpose, with --out"
            self._problem("PORT-OTHER-MODEL", self.out, what, got=last.model.path, remedy=remedy)
        else:
            self.notes.append(f"{self.out}: replaces the port of {last.model.path}")

    def _person(self) -> tuple[dict[str, bytes], Declared, tuple[Waiver, ...]]:
        person: dict[str, bytes] = {}
        declared = Declared()
        waivers: tuple[Waiver, ...] = ()
        try:
            person = read_person(self.out)
        except RefusedError as error:
            self.problems += error.problems
        where = str(self.out / PORT_TOML)
        try:
            declared = parse_declared(person.get(PORT_TOML), where)
        except RefusedError as error:
            self.problems += error.problems
        self._preprocessing(person.get(PORT_TOML), where)
        try:
            waivers = parse_waivers(person.get(WAIVERS_TOML), item_codes(), str(self.out / WAIVERS_TOML))
        except RefusedError as error:
            self.problems += error.problems
        self.notes += [f"waiver without effect, it is over: {w.line()}" for w in waivers if w.expired(self.today)]
        return person, declared, waivers

    def _preprocessing(self, data: bytes | None, where: str) -> None:
        """Judge the keys of `[preprocessing]` now; names of inputs are judged once the model is read."""
        try:
            table = read_toml(data or b"", where).get("preprocessing")
        except RefusedError:
            return
        if isinstance(table, Mapping):
            nested = tuple(name for name, value in table.items() if isinstance(value, Mapping))
            try:
                preprocessing_from(table, nested or ("",), where=where)
            except RefusedError as error:
                self.problems += error.problems

    def _model(self, last: PortInfo | None) -> Path:
        model = self.given.model
        if self.given.is_rerun:
            if last is None:
                return model
            model = last.model.locate(self.out)
        if not model.is_file():
            what = "no such file" if not model.exists() else "not a file"
            remedy = f"python -m phases.baseline MODEL --out {self.out}" if self.given.is_rerun else ""
            self._problem("MODEL-ABSENT", model, what, expected="an ONNX model", remedy=remedy)
        return model

    def _data(self, last: PortInfo | None, asked: Mapping[str, Any], declared: Declared) -> Path | None:
        data, where = self.given.data, "--data"
        if data is None and declared.data is not None:
            data, where = self.out / declared.data, f"{self.out / PORT_TOML}: data"
        elif data is None and asked.get("data") and last is not None and last.data is not None:
            data, where = last.data.locate(self.out), "data of the last run"
        if data is not None and not data.is_file():
            what = "no such file" if not data.exists() else "not a file"
            self._problem("DATA-ABSENT", f"{where}: {data}", what, expected="an .npz file of real inputs")
        return data

    def _device(self, asked: Mapping[str, Any], declared: Declared) -> tuple[str, str]:
        choices = (
            (self.given.device, "--device"),
            (declared.device, PORT_TOML),
            (asked.get("device"), "the last run"),
            (DEFAULT_DEVICE, "default"),
        )
        name, source = next((name, source) for name, source in choices if name is not None)
        try:
            load_device(name)
        except RefusedError as error:
            self.problems += error.problems
        if self.given.device and declared.device and self.given.device != declared.device:
            self.notes.append(f"--device {self.given.device} rules over device {declared.device!r} in {PORT_TOML}")
        return name, source

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for text in self.given.shapes:
            name, equals, dims = text.rpartition("=")
            shape = _dimensions(dims)
            if not equals or not name or shape is None:
                expected = "NAME=1,3,224,224 with dimensions from 1"
                self._problem("OPTION-SHAPE", "--shape", "not a shape", expected=expected, got=repr(text))
            elif found.get(name, shape) != shape:
                self._problem("OPTION-SHAPE", "--shape", f"two shapes for input {name!r}", got=repr(text))
            else:
                found[name] = shape
        return found


def _dimensions(text: str) -> tuple[int, ...] | None:
    parts = text.split(",")
    if not all(p.isascii() and p.isdigit() and len(p) <= 10 and 1 <= int(p) <= MAX_DIMENSION for p in parts):
        return None
    return tuple(int(p) for p in parts)
