"""Generated kernels into a shared object that the sanitized child loads.

Why one object for all kernels of a run: the compiler is the slow part. Its name carries a hash of everything that
went into it, so that what is loaded is what was written.
"""

import hashlib
import json
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from bringup.execute.abi import ExternalAbi
from bringup.execute.toolchain import Toolchain, find_toolchain
from bringup.execute.wrapper import wrapper_text
from manifest.errors import PortError
from manifest.io import sha256_hex

INCLUDE: Final = Path(__file__).resolve().parent / "include"
AIE_API_HOST: Final = Path(__file__).resolve().parents[1] / "aie_api_host"
RUNTIME: Final = "aie_host_runtime.cc"
LANGUAGE: Final = ("-std=c++20", "-g1", "-fPIC", "-ffp-contract=off", "-ftrivial-auto-var-init=pattern", "-w")
SANITIZED: Final = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
FAST: Final = ("-O2",)
JOBS: Final = 2
COMPILE_S: Final = 600
MAX_SOURCES: Final = 2000
CODE_SUFFIXES: Final = frozenset({".cc", ".cpp", ".cxx", ".c"})
HEADER_SUFFIXES: Final = CODE_SUFFIXES | {".h", ".hh", ".hpp", ".hxx", ".inc", ".inl"}

_ERROR: Final = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.M)
_UNDEFINED: Final = re.compile(r"undefined reference to [`'](?P<symbol>[^']+)'")


class CompileError(PortError):
    """A kernel that does not compile, or is not what the design declares.

    Attributes:
        file: source as it was given, "" = not known.
        line: number, 0 = not known.
        text: what the compiler says, one line.
        symbol: kernel, "" = not known.
    """

    def __init__(self, *, file: str, line: int, text: str, symbol: str = "") -> None:
        self.file = file
        self.line = line
        self.text = text
        self.symbol = symbol
        place = f"{file}:{line}" if line else file or "link"
        super().__init__(f"{place}: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Compiled kernels.

    Attributes:
        path: shared object, its name carries `source_sha256`.
        source_sha256: of sources, headers, flags and compiler.
        externals: functions in it.
        sanitize: AddressSanitizer and UndefinedBehaviorSanitizer are in it.
        tiles: modes and cascades of tiles are in it.
        compiler: its version.
        sources: path -> sha256 of what was given.
        seconds: that compiling took, 0 = it was there.
    """

    path: Path
    source_sha256: str
    externals: tuple[ExternalAbi, ...]
    sanitize: bool
    tiles: bool
    compiler: str
    sources: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def sha256(self) -> str:
        """Of the shared object."""
        return sha256_hex(self.path.read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A translation unit: wrapper of one source with one set of flags."""

    name: str
    source: str
    text: str
    flags: tuple[str, ...]
    externals: tuple[ExternalAbi, ...]


def build(
    sources: Mapping[str, bytes],
    externals: Sequence[ExternalAbi],
    out: Path,
    *,
    sanitize: bool = True,
    flags: Sequence[str] = (),
    include: Sequence[Path] = (),
    api: Path | None = AIE_API_HOST,
    jobs: int = JOBS,
) -> Library:
    """Compile kernels for the host.

    Args:
        sources: C++ files and headers by relative path, as they lie beside each other.
        externals: functions that are called.
        out: folder for what is made; what is there from the same input is taken.
        sanitize: with AddressSanitizer and UndefinedBehaviorSanitizer; else for speed.
        flags: `-D` of every unit, such as the architecture.
        include: further folders of headers; with them everything is compiled again each time.
        api: folder of the host's AIE API; None = the kernels do without.
        jobs: compilers at once.

    Returns:
        The shared object.

    Raises:
        CompileError: names file and line.
        UnavailableError: there is no compiler.
        ValueError: a path or a name that makes no sense.
    """
    tools = find_toolchain()
    _require_sources(sources)
    units = _units(sources, externals)
    command = [*LANGUAGE, *(SANITIZED if sanitize else FAST), *flags]
    folders = [INCLUDE, *([] if api is None else [api / "include"]), *include]
    own = [INCLUDE, *([] if api is None else [api])]
    digest = _digest(sources, units, [*command, tools.version], own, include)
    made = Library(
        path=out / f"kernels-{digest[:16]}{'' if sanitize else '-fast'}.so",
        source_sha256=digest,
        externals=tuple(externals),
        sanitize=sanitize,
        tiles=api is not None,
        compiler=tools.version,
        sources={name: sha256_hex(data) for name, data in sources.items()},
    )
    if made.path.exists() and not include:  # what else lies in a caller's folders is not known
        return made
    begin = time.monotonic()
    work = out / f"build-{digest[:16]}{'' if sanitize else '-fast'}"
    host = out / f"host-{_digest({}, (), [*command, tools.version], own, ())[:16]}"
    _Build(tools, work, host, command, folders).make(sources, units, api, made.path, jobs)
    return _timed(made, time.monotonic() - begin)


def _timed(library: Library, seconds: float) -> Library:
    return Library(
        path=library.path,
        source_sha256=library.source_sha256,
        externals=library.externals,
        sanitize=library.sanitize,
        tiles=library.tiles,
        compiler=library.compiler,
        sources=library.sources,
        seconds=seconds,
    )


def _require_sources(sources: Mapping[str, bytes]) -> None:
    if len(sources) > MAX_SOURCES:
        msg = f"{len(sources)} sources, at most {MAX_SOURCES}"
        raise ValueError(msg)
    for name in sources:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or any(c in name for c in '\0\n"\\'):
            msg = f"source {name!r}: expected a relative path inside the folder"
            raise ValueError(msg)


def _units(sources: Mapping[str, bytes], externals: Sequence[ExternalAbi]) -> tuple[_Unit, ...]:
    """One unit for each source that defines a function which is called."""
    symbols = [e.symbol for e in externals]
    twice = sorted({s for s in symbols if symbols.count(s) > 1})
    if twice:
        msg = f"kernels declared twice: {', '.join(twice)}"
        raise ValueError(msg)
    groups: dict[tuple[str, tuple[str, ...]], list[ExternalAbi]] = {}
    for external in externals:
        groups.setdefault((source_of(external, sources), external.flags), []).append(external)
    return tuple(
        _Unit(name=f"unit{i:03}", source=source, text=wrapper_text(source, group), flags=flags, externals=tuple(group))
        for i, ((source, flags), group) in enumerate(groups.items())
    )


def source_of(external: ExternalAbi, sources: Mapping[str, bytes]) -> str:
    """The source that defines a kernel: the one that it names, the one of its name, or the only one that mentions it.

    Raises:
        CompileError: there is none, or several.
    """
    symbol = external.symbol
    code = [name for name in sources if PurePosixPath(name).suffix in CODE_SUFFIXES]
    if external.source:
        found = [name for name in sources if name == external.source]
    else:
        found = [name for name in code if PurePosixPath(name).stem == symbol]
        if not found:
            word = re.compile(rb"\b" + symbol.encode() + rb"\b")
            found = [name for name in code if word.search(sources[name])]
    if len(found) == 1:
        return found[0]
    what = f"several sources define it: {', '.join(sorted(found))}" if found else "no source defines it"
    raise CompileError(file=external.source, line=0, text=f"kernel {symbol}: {what}", symbol=symbol)


def _digest(
    sources: Mapping[str, bytes],
    units: Sequence[_Unit],
    words: Sequence[str],
    own: Sequence[Path],
    include: Sequence[Path],
) -> str:
    """Of everything that the compiler sees; of a caller's folders the headers in them, not those further down."""
    files = {f"source/{name}": sha256_hex(data) for name, data in sources.items()}
    found = [(f"own{i}", folder, folder.rglob("*")) for i, folder in enumerate(own)]
    found += [(f"include{i}", folder, folder.glob("*")) for i, folder in enumerate(include)]
    for mark, folder, paths in found:
        for path in sorted(p for p in paths if p.suffix in HEADER_SUFFIXES and p.is_file()):
            files[f"{mark}/{path.relative_to(folder).as_posix()}"] = sha256_hex(path.read_bytes())
    made = [[u.text, list(u.flags)] for u in units]
    return hashlib.sha256(json.dumps([files, made, list(words)], sort_keys=True).encode()).hexdigest()


class _Build:
    """One folder of objects; those that depend on no kernel lie beside it for the next build."""

    def __init__(
        self, tools: Toolchain, work: Path, host: Path, command: Sequence[str], folders: Sequence[Path]
    ) -> None:
        self.tools = tools
        self.work = work
        self.host = host
        self.source = work / "src"
        includes = [word for folder in (self.source, *folders) for word in ("-I", str(folder))]
        prefixes = [f"-ffile-prefix-map={self.source}/=", f"-ffile-prefix-map={INCLUDE}/=host/"]
        prefixes += [f"-ffile-prefix-map={folder}/=" for folder in folders]
        self.command = [tools.compiler, *command, *includes, *prefixes]

    def make(
        self, sources: Mapping[str, bytes], units: Sequence[_Unit], api: Path | None, target: Path, jobs: int
    ) -> None:
        """Compile and link."""
        self.host.mkdir(parents=True, exist_ok=True)
        for name, data in sources.items():
            path = self.source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        tasks: list[tuple[Path, tuple[str, ...], _Unit | None]] = []
        for unit in units:
            path = self.work / f"{unit.name}.cc"
            path.write_text(unit.text, encoding="utf-8")
            tasks.append((path, unit.flags, unit))
        tasks.append((INCLUDE / "trampoline.cc", (f"-DHOST_CALL_TILES={int(api is not None)}",), None))
        if api is not None:
            tasks.append((api / RUNTIME, (), None))
        with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
            objects = list(pool.map(lambda task: self.object(*task), tasks))
        self.link(objects, target)

    def object(self, path: Path, flags: Sequence[str], unit: _Unit | None) -> Path:
        """Compile one unit; the functions it is for have to be `extern "C"`."""
        made = (self.host if unit is None else self.work) / f"{path.stem}.o"
        if unit is None and made.exists():
            return made
        part = made.with_suffix(".part")
        self.call([*self.command, *flags, "-c", str(path), "-o", str(part)], unit)
        if unit is not None:
            self.require_plain_names(part, unit)
        part.replace(made)
        return made

    def require_plain_names(self, made: Path, unit: _Unit) -> None:
        """Functions with C++ names are not what a core links against.

        Raises:
            CompileError: names the function.
        """
        listed = subprocess.run(
            [self.tools.program("nm"), "--defined-only", str(made)], capture_output=True, text=True, check=True
        ).stdout
        names = {line.split()[-1] for line in listed.splitlines() if line.split()}
        for external in unit.externals:
            if external.symbol not in names:
                text = f'kernel {external.symbol} is not defined as extern "C"'
                raise CompileError(file=unit.source, line=0, text=text, symbol=external.symbol)

    def link(self, objects: Sequence[Path], target: Path) -> None:
        """One shared object, complete in itself but for the libraries of the compiler."""
        part = target.with_suffix(".part")
        words = [w for w in self.command if w.startswith(("-O", "-fsanitize", "-std"))]
        self.call([self.tools.compiler, *words, "-shared", "-Wl,-z,defs", *map(str, objects), "-o", str(part)], None)
        part.replace(target)

    def call(self, command: Sequence[str], unit: _Unit | None) -> None:
        """Run the compiler.

        Raises:
            CompileError: it refuses.
        """
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, cwd=self.work, check=False
            )
        except subprocess.TimeoutExpired as error:
            text = f"the compiler took more than {COMPILE_S} s"
            raise CompileError(file="" if unit is None else unit.source, line=0, text=text) from error
        if done.returncode:
            raise self.error(done.stderr, unit)

    def error(self, stderr: str, unit: _Unit | None) -> CompileError:
        """What the compiler said, as its first error."""
        externals = () if unit is None else unit.externals
        found = _ERROR.search(stderr)
        if found is not None:
            text = found["text"].removeprefix("static assertion failed: ")
            file, line = self.relative(found["file"]), int(found["line"])
            if unit is not None and file == f"{unit.name}.cc":
                file, line = unit.source, 0
            symbol = next((e.symbol for e in externals if e.symbol in text), _symbols(externals))
            return CompileError(file=file, line=line, text=text, symbol=symbol)
        missing = _UNDEFINED.search(stderr)
        if missing is not None:
            return CompileError(file="", line=0, text=f"undefined reference to {missing['symbol']}")
        last = stderr.strip().splitlines()[-1:] or ["the compiler failed and said nothing"]
        return CompileError(file="", line=0, text=last[0][:400], symbol=_symbols(externals))

    def relative(self, file: str) -> str:
        """A file as it was given, without the folder that it was compiled in."""
        path = Path(file) if Path(file).is_absolute() else self.work / file
        for root in (self.source, self.work, AIE_API_HOST, INCLUDE):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return file


def _symbols(externals: Sequence[ExternalAbi]) -> str:
    return externals[0].symbol if len(externals) == 1 else ""
