"""The `.npz` reader and writer: what it carries, what it refuses, and that no pickle ever runs."""

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from manifest.errors import RefusedError
from manifest.io import arrays_to_bytes, load_arrays, read_npz, save_arrays, write_npz
from manifest.io.npz import MAX_NAME_BYTES

DTYPES = st.sampled_from(["?", "i1", "u1", "<i2", "<u2", "<i4", "<i8", "<f4", "<f8", "<f2", "<c8", "<U3", "S2"])


class WritesAFile:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.path, "executed"))


def names() -> st.SearchStrategy[str]:
    hostile = [
        "file",
        "allow_pickle",
        "a",
        "a.npy",
        "a.npy.npy",
        "x/y",
        "../up",
        "/abs",
        "",
        ".npy",
        "PK",
        "ünïcödé",
        "日本",
    ]
    return st.sampled_from(hostile) | st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
    )


@given(
    st.dictionaries(
        names(), DTYPES.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, min_side=0))), max_size=4
    )
)
def test_whatever_is_written_comes_back(arrays: dict[str, NDArray[Any]]) -> None:
    back = load_arrays(arrays_to_bytes(arrays))
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
        assert back[name].flags.writeable
        assert back[name].flags.c_contiguous


def test_names_that_numpy_confuses(tmp_path: Path) -> None:
    hostile = ["file", "allow_pickle", "a", "a.npy", "self", "x/y", "../z", "k" * 300]
    arrays = {n: np.array([i], np.int8) for i, n in enumerate(hostile)}

    write_npz(tmp_path / "x.npz", arrays)
    back = read_npz(tmp_path / "x.npz")
    assert {n: int(v[0]) for n, v in back.items()} == {n: int(v[0]) for n, v in arrays.items()}
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


def test_bytes_do_not_depend_on_order_clock_or_memory_layout() -> None:
    a, b = np.arange(6, dtype=">i4").reshape(2, 3), np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3))
    first = arrays_to_bytes({"p": a, "q": a})
    assert first == arrays_to_bytes({"q": b, "p": b})
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert [(i.filename, i.compress_type, i.date_time) for i in archive.infolist()] == [
            ("p.npy", zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0)),
            ("q.npy", zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0)),
        ]


def test_numpy_reads_what_is_written_and_the_other_way(tmp_path: Path) -> None:
    array = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    write_npz(tmp_path / "ours.npz", {"x": array, "s": np.full((), 3.0)})
    with np.load(tmp_path / "ours.npz") as loaded:
        np.testing.assert_array_equal(loaded["x"], array)
        assert loaded["s"].shape == ()
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "theirs.npz", x=np.asfortranarray(array), big=array.astype(">f8"))
        back = read_npz(tmp_path / "theirs.npz")
        np.testing.assert_array_equal(back["x"], array)
        assert back["big"].dtype == np.dtype("f8")


@pytest.mark.parametrize("compressed", [False, True])
def test_pickle_is_never_executed(tmp_path: Path, compressed: bool) -> None:
    bait = tmp_path / "executed"
    evil = np.array([WritesAFile(bait)], dtype=object)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "evil.npz", x=evil)
    with pytest.raises(RefusedError, match=r"\[NPZ-OBJECT\].*'x'.*never loaded"):
        read_npz(tmp_path / "evil.npz")
    np.save(tmp_path / "evil.npy", evil)
    with pytest.raises(RefusedError, match=r"\[NPZ-IS-NPY\].*single \.npy array"):
        read_npz(tmp_path / "evil.npy")
    with pytest.raises(RefusedError, match=r"\[NPZ-OBJECT\].*never written"):
        write_npz(tmp_path / "out.npz", {"x": evil})
    assert not bait.exists()
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.zeros(2, [("a", "i4")]), "no plain number"),
        (np.zeros(2, "V3"), "no plain number"),
        (np.zeros(2, "M8[s]"), "no plain number"),
    ],
)
def test_structured_types_are_refused_both_ways(tmp_path: Path, array: NDArray[Any], match: str) -> None:
    np.savez(tmp_path / "x.npz", x=array)
    with pytest.raises(RefusedError, match=match):
        read_npz(tmp_path / "x.npz")
    with pytest.raises(RefusedError, match=match):
        arrays_to_bytes({"x": array})


def test_name_length_limit() -> None:
    one = np.zeros(1, np.int8)
    longest = "n" * MAX_NAME_BYTES
    assert list(load_arrays(arrays_to_bytes({longest: one}))) == [longest]
    with pytest.raises(RefusedError, match="too long for an archive; expected at most 65531 bytes; got 65532"):
        arrays_to_bytes({longest + "n": one})


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_cannot_be_carried(name: str) -> None:
    with pytest.raises(RefusedError, match=r"\[NPZ-NAME\].*cannot be carried"):
        arrays_to_bytes({name: np.zeros(1)})


def test_every_problem_of_a_write_is_reported() -> None:
    with pytest.raises(RefusedError) as caught:
        arrays_to_bytes({"a\0": np.zeros(1), "o": np.array([None]), "fine": np.zeros(1)})
    assert [p.code for p in caught.value.problems] == ["NPZ-NAME", "NPZ-OBJECT"]


def test_size_limit_from_the_directory(tmp_path: Path) -> None:
    write_npz(tmp_path / "x.npz", {"x": np.zeros(1000, np.int8), "y": np.zeros(1000, np.int8)})
    total = 2 * (1000 + 128)
    assert len(read_npz(tmp_path / "x.npz", max_bytes=total)) == 2
    with pytest.raises(RefusedError, match=rf"\[NPZ-LARGE\].*expected at most {total - 1} bytes"):
        read_npz(tmp_path / "x.npz", max_bytes=total - 1)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY" + bytes(50_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    with pytest.raises(RefusedError, match="NPZ-LARGE"):
        read_npz(tmp_path / "bomb.npz", max_bytes=10_000_000)


def raw(shape: str, data: bytes, descr: str = "'|i1'", version: int = 1) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H", len(header)) if version == 1 else struct.pack("<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def archive_of(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("member", "match"),
    [
        (raw("(4000000000,)", b"abc"), "needs 4000000000 bytes, it has 3"),
        (raw("(2,)", b"abc"), "needs 2 bytes, it has 3"),
        (raw("(-3,)", b"abc"), "no valid shape"),
        (raw("(True,)", b"a"), "no valid shape"),
        (raw("[3]", b"abc"), "no valid shape"),
        (raw("(0, 9223372036854775808)", b""), "claims the shape"),
        (raw("(" + "1, " * 33 + ")", b"a"), "no valid shape"),
        (raw("(3,)", b"abc", "'|V1'"), "no plain number"),
        (raw("(3,)", b"abc", "'<i3'"), "unknown type"),
        (raw("(3,)", b"", "'<U0'"), "no size"),
        (raw("(3,)", b"abc", "'|O'"), "Python objects"),
        (raw("(3,)", b"abc", "[('a', '|O')]"), "no plain number"),
        (raw("(3,)", b"abc", "__import__('os')"), "no plain dictionary"),
        (raw("(" * 3000, b"abc"), "no plain dictionary"),
        (raw("(3,)", b"abc", version=9), "unknown .npy version 9"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "claims 4294967295 bytes"),
        (b"hello", "not an .npy array"),
        (b"", "not an .npy array"),
    ],
)
def test_hostile_members(member: bytes, match: str) -> None:
    with pytest.raises(RefusedError, match=match) as caught:
        load_arrays(archive_of(("x.npy", member)))
    assert "\n" not in str(caught.value)


def test_version_2_headers_are_read() -> None:
    np.testing.assert_array_equal(load_arrays(archive_of(("x.npy", raw("(3,)", b"abc", version=2))))["x"], [97, 98, 99])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_not_arrays(tmp_path: Path) -> None:
    good = raw("(1,)", b"a")
    with pytest.raises(RefusedError, match="the name occurs twice"):
        load_arrays(archive_of(("x.npy", good), ("x.npy", good)))
    with pytest.raises(RefusedError, match=r"'readme.txt'.*not an array"):
        load_arrays(archive_of(("readme.txt", b"hi")))
    with pytest.raises(RefusedError, match="NPZ-NOT-ZIP"):
        load_arrays(b"\x80\x04\x95pickle")
    with pytest.raises(RefusedError, match="NPZ-MISSING"):
        read_npz(tmp_path / "absent.npz")
    with pytest.raises(RefusedError, match="NPZ-MISSING"):
        read_npz(tmp_path)
    with pytest.raises(RefusedError, match="NPZ-UNWRITABLE"):
        save_arrays(tmp_path / "no" / "dir.npz", {})


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(RefusedError, match="NPZ-MISSING"):
        read_npz(tmp_path / "pipe.npz")


def test_every_changed_byte_is_noticed_or_harmless() -> None:
    """No change of one byte leads to another exception than RefusedError or to a silent change of the data."""
    good = arrays_to_bytes({"x": np.arange(5, dtype=np.int16), "y": np.zeros((2, 2), np.float32)})
    expected = load_arrays(good)
    for at in range(len(good)):
        for flip in (0x01, 0x80, 0xFF):
            bad = bytearray(good)
            bad[at] ^= flip
            try:
                got = load_arrays(bytes(bad))
            except RefusedError:
                continue
            if got.keys() == expected.keys():
                assert all(got[k].tobytes() == expected[k].tobytes() for k in got)


def test_a_directory_larger_than_the_limit_is_not_read() -> None:
    data = bytearray(archive_of(("x.npy", raw("(1,)", b"a"))))
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<I", data, at + 12, (64 << 20) + 1)
    with pytest.raises(RefusedError, match="NPZ-DIRECTORY"):
        load_arrays(bytes(data))


def test_the_directory_of_a_zip64_archive_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    data = bytearray(archive_of(("x.npy", raw("(1,)", b"a"))))
    at = data.rfind(b"PK\x06\x06")
    assert at > 0
    assert load_arrays(bytes(data))["x"].tolist() == [97]
    struct.pack_into("<Q", data, at + 40, (64 << 20) + 1)
    with pytest.raises(RefusedError, match=rf"NPZ-DIRECTORY.*expected .* {64 << 20} bytes; got {(64 << 20) + 1}"):
        load_arrays(bytes(data))


def test_rank_limit_both_ways() -> None:
    deep = np.zeros((1,) * 32, np.int8)
    assert load_arrays(arrays_to_bytes({"x": deep}))["x"].ndim == 32
    with pytest.raises(RefusedError, match="it has 33 axes, at most 32 are carried"):
        arrays_to_bytes({"x": deep[None]})


def test_large_arrays_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(1000, dtype=np.int32)
    whole = arrays_to_bytes({"x": array})
    for piece in (1, 4, 7, 4096):
        monkeypatch.setattr("manifest.io.npz._CHUNK", piece)
        assert arrays_to_bytes({"x": array}) == whole
        np.testing.assert_array_equal(load_arrays(whole)["x"], array)


def test_a_size_that_cannot_be_true_is_refused() -> None:
    data = bytearray(archive_of(("x.npy", raw("(1,)", b"a"))))
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<II", data, at + 20, 1 << 30, 1 << 30)
    with pytest.raises(RefusedError, match="its size cannot be true"):
        load_arrays(bytes(data))
