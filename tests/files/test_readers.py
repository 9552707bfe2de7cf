"""Readers refuse what is damaged, hostile or not what it says, and name the place."""

import io
import json
import os
import sys
import warnings
import zipfile

import numpy as np
import pytest
from h5_tree import tree

from minikeras import files as reading
from minikeras.errors import LoadError, NotFoundError
from minikeras.files import archive, hdf5, strict_json, tensors

pytest.importorskip("safetensors")

ARRAYS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b/c": np.array([True, False]),
    "scalar": np.array(3, dtype="int64"),
    "empty": np.zeros((0, 4), "float16"),
}


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array), name


def flipped(content: bytes, position: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1 << bit
    return bytes(changed)


# JSON ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' appears twice"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "is not JSON"),
        (b"[1e999]", "too large"),
        (b"[" + b"9" * 5000 + b"]", "too large"),
        (b"[18446744073709551616]", "too large"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64"),
        (b"[" * 100_000, "nested deeper than 64"),
        (b"\xef\xbb\xbf{}", "damaged JSON"),
        (b'"\xff"', "damaged JSON"),
        (b'{"a": 1', "damaged JSON"),
        (b"", "damaged JSON"),
    ],
)
def test_json_that_is_not_strict_is_refused(text, reason):
    with pytest.raises(LoadError, match=reason) as caught:
        strict_json.loads(text, "folder/file.json", "config")
    assert str(caught.value).startswith("file.json: config: ") and len(str(caught.value)) <= 300


def test_brackets_within_texts_do_not_count_as_depth():
    value = {"a": "[" * 100 + '\\"', "b": [[1, 2.5, None, True]]}
    assert strict_json.loads(json.dumps(value).encode(), "f") == value


def test_written_json_is_the_same_for_the_same_value():
    assert strict_json.dumps({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    with pytest.raises(ValueError):
        strict_json.dumps(float("nan"))


# Files -----------------------------------------------------------------------------------------------------------------


def test_pipes_folders_and_missing_files_are_told_apart(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(LoadError, match="is not a regular file"):
            reading.read_file(tmp_path / name)
    with pytest.raises(NotFoundError, match="there is no such file"):
        reading.read_file(tmp_path / "missing")


def test_links_are_followed_only_where_the_user_gave_the_name(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert reading.read_file(tmp_path / "link") == b"x"
    with pytest.raises(LoadError, match="cannot be opened"):
        reading.read_file(tmp_path / "link", follow=False)
    with pytest.raises(LoadError, match="holds 1 bytes, at most 0"):
        reading.read_file(tmp_path / "a", most=0)


# safetensors -----------------------------------------------------------------------------------------------------------


def test_arrays_come_back_and_other_readers_understand_the_file(tmp_path):
    from safetensors.numpy import load_file

    tensors.save(tmp_path / "x.safetensors", ARRAYS, {"note": "hello"})
    found, metadata = tensors.load(tmp_path / "x.safetensors")
    same(found, ARRAYS)
    assert metadata == {"note": "hello"} and found["a"].flags.owndata and found["a"].flags.writeable
    same(load_file(tmp_path / "x.safetensors"), ARRAYS)


def test_files_of_other_writers_are_read(tmp_path):
    from safetensors.numpy import save_file

    save_file(ARRAYS, tmp_path / "x.safetensors")
    same(tensors.load(tmp_path / "x.safetensors")[0], ARRAYS)


def test_nothing_can_be_saved(tmp_path):
    tensors.save(tmp_path / "none", {}, {"k": "v"})
    assert tensors.load(tmp_path / "none") == ({}, {"k": "v"})


@pytest.mark.parametrize(
    "values", [np.array(["text"]), np.ones(2, "complex128"), np.array([None])], ids=["text", "c16", "object"]
)
def test_arrays_that_the_format_cannot_hold_are_refused(values):
    with pytest.raises(TypeError, match="safetensors: 'x' has dtype"):
        tensors.encode({"x": values})


def test_every_flipped_bit_of_a_safetensors_file_is_seen_or_harmless(tmp_path):
    content = tensors.encode({"w": np.arange(9, dtype="float32")}, {"step": "7"})
    for position in range(len(content)):
        (tmp_path / "x").write_bytes(flipped(content, position, position % 8))
        try:
            found, metadata = tensors.load(tmp_path / "x")
        except LoadError:
            continue
        # The name of the digest is what was hit: there is none then, and all else is right.
        same(found, {"w": np.arange(9, dtype="float32")})
        assert metadata["step"] == "7"


def test_every_truncation_of_a_safetensors_file_is_refused(tmp_path):
    content = tensors.encode({"w": np.arange(9, dtype="float32")})
    for length in range(len(content)):
        (tmp_path / "x").write_bytes(content[:length])
        with pytest.raises(LoadError):
            tensors.load(tmp_path / "x")


def header_file(tmp_path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (tmp_path / "x").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return tmp_path / "x"


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"a": entry(), "b": entry()}, "starts at byte 0 of the data, the array before ends at 4"),
        ({"a": entry(offsets=(4, 8))}, "starts at byte 4"),
        ({"a": entry(shape=(2,))}, "needs 8 bytes"),
        ({"a": entry(shape=(2**40, 2**40), offsets=(0, 4))}, "needs"),
        ({"a": entry(shape=(-1,))}, "lists of counts"),
        ({"a": entry(shape=(True,))}, "lists of counts"),
        ({"a": entry(shape=(1,) * 33)}, "lists of counts"),
        ({"a": entry("F31")}, "unknown dtype F31"),
        ({"a": {**entry(), "x": 1}}, "nothing else"),
        ({"a\n": entry()}, "names must be printable"),
        ({"": entry()}, "names must be printable"),
        ({"__metadata__": {"a": 1}, "a": entry()}, "must map texts to texts"),
        ({"a": entry("U8", (3,), (0, 3))}, "declares"),
        (b"[]        ", "does not start with '{'"),
        (b'{"a": {}, "a": {}}', "appears twice"),
    ],
)
def test_headers_that_do_not_describe_the_file_are_refused(tmp_path, header, reason):
    with pytest.raises(LoadError, match=reason):
        tensors.load(header_file(tmp_path, header, b"0000"))


def test_a_header_that_declares_gigabytes_is_refused_before_anything_is_allocated(tmp_path):
    (tmp_path / "x").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(LoadError, match="declares 4611686018427387904 bytes, 2 are possible"):
        tensors.load(tmp_path / "x")


# HDF5 --------------------------------------------------------------------------------------------------------------------


def h5(arrays=ARRAYS) -> bytes:
    return hdf5.encode(tree(arrays))


def plain(root):
    return {dataset.path.removeprefix("/"): dataset.array for dataset in root.datasets()}


def test_hdf5_comes_back():
    same(plain(hdf5.read(h5(), "x.h5")), ARRAYS)


def test_h5py_reads_what_is_written_here_and_the_other_way_round():
    h5py = pytest.importorskip("h5py")
    many = {f"group/{number}": np.full((2,), number, "int32") for number in range(700)} | ARRAYS
    node = tree(many)
    node.below("group").attributes["name"] = "größer"
    with h5py.File(io.BytesIO(hdf5.encode(node))) as file:
        same({name: file[name][()] for name in many}, many)
        assert file["group"].attrs["name"].decode() == "größer"
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in many.items():
            file[name] = array
        file["big"] = np.arange(3, dtype=">f8")
        file["group"].attrs["name"] = "größer"
        file["group"].attrs["names"] = ["a", "ü"]
        file["group"].attrs["fixed"] = np.array([b"x", b"yz"])
        file["group"].attrs["none"] = []
    root = hdf5.read(buffer.getvalue(), "x.h5")
    same({name: root.get(name).array for name in many}, many)
    assert root.get("big").array.tolist() == [0.0, 1.0, 2.0]
    group = root.get("group")
    assert group.attributes.get("name") == "größer" and group.attributes.get("names") == ["a", "ü"]
    assert group.attributes.get("fixed") == ["x", "yz"] and group.attributes.get("none").size == 0
    assert group.attributes.get("missing") is None and root.get("no/such") is None


def test_every_flipped_bit_of_an_hdf5_file_written_here_is_seen_or_harmless():
    content = h5({"w": np.arange(9, dtype="float32")})
    for position in range(len(content)):
        try:
            found = plain(hdf5.read(flipped(content, position, position % 8), "x.h5"))
        except LoadError:
            continue
        same(found, {"w": np.arange(9, dtype="float32")})


def test_every_truncation_of_an_hdf5_file_is_refused():
    content = h5()
    for length in range(len(content)):
        with pytest.raises(LoadError):
            hdf5.read(content[:length], "x.h5")


def hostile(make) -> bytes:
    h5py = pytest.importorskip("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        make(file, h5py)
    return buffer.getvalue()


def _virtual(file, h5py):
    layout = h5py.VirtualLayout((3,), "f4")
    layout[:] = h5py.VirtualSource("/etc/hostname", "x", (3,))
    file.create_virtual_dataset("v", layout)


def _hard_link(file, h5py):
    file["a"] = np.ones(3)
    file["b"] = file["a"]


def _circle(file, h5py):
    file.create_group("a")["b"] = file["/"]


HOSTILE = {
    "a soft link": lambda file, h5py: file.__setitem__("a", h5py.SoftLink("/x")),
    "newer HDF5": lambda file, h5py: file.__setitem__("a", h5py.ExternalLink("/etc/hostname", "/x")),
    "data in another file": lambda file, h5py: file.create_dataset("a", (9,), "f4", external=[("/etc/hostname", 0, 36)]),
    "compressed or filtered": lambda file, h5py: file.create_dataset("a", (99,), "f4", chunks=(9,), compression="gzip"),
    "stored in chunks": lambda file, h5py: file.create_dataset("a", (99,), "f4", chunks=(9,)),
    "never written": lambda file, h5py: file.create_dataset("a", (2**40,), "f4"),
    "stored virtual": _virtual,
    "is reached twice": _hard_link,
    "reached twice": _circle,
    "datatype of class": lambda file, h5py: file.__setitem__("a", np.ones(2, [("x", "f4"), ("y", "i4")])),
    "array of texts": lambda file, h5py: file.__setitem__("a", "text"),
}


@pytest.mark.parametrize(("reason", "make"), HOSTILE.items(), ids=HOSTILE)
def test_what_weights_do_not_need_of_hdf5_is_refused(reason, make):
    with pytest.raises(LoadError, match=reason):
        hdf5.read(hostile(make), "x.h5")


def test_the_newer_layout_of_hdf5_is_refused_with_the_reason():
    h5py = pytest.importorskip("h5py")
    buffer = io.BytesIO()
    h5py.File(buffer, "w", libver="latest").close()
    with pytest.raises(LoadError, match="superblock of version 3"):
        hdf5.read(buffer.getvalue(), "x.h5")


def test_complex_weights_are_refused_while_writing():
    with pytest.raises(TypeError, match="hold numbers and truth values, found complex64"):
        h5({"w": np.ones(2, "complex64")})


# ZIP -------------------------------------------------------------------------------------------------------------------------

MEMBERS = {"config.json": b"{}", "data.h5": bytes(range(200))}


def unpacked(content, allowed=(), most=10_000):
    return archive.read(content, "m.keras", MEMBERS, allowed, most)


def zipped(members, **options) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as file:
        warnings.simplefilter("ignore")  # of repeated names
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def test_archives_come_back_stored_or_deflated():
    assert unpacked(archive.encode(MEMBERS)) == MEMBERS
    assert unpacked(zipped(MEMBERS.items(), compression=zipfile.ZIP_DEFLATED)) == MEMBERS
    assert unpacked(zipped([*MEMBERS.items(), ("assets/a", b"1")]), ["assets/"])["assets/a"] == b"1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped([*MEMBERS.items(), ("data.h5", b"2")]), "a member appears twice"),
        (zipped([*MEMBERS.items(), ("other", b"2")]), "does not belong there"),
        (zipped([*MEMBERS.items(), ("assets/../../x", b"2")]), "does not belong there"),
        (zipped([*MEMBERS.items(), ("/assets/x", b"2")]), "does not belong there"),
        (zipped([("config.json", b"{}")]), "data.h5: is missing"),
        (
            zipped([("config.json", b"{}"), ("data.h5", bytes(20_000))], compression=zipfile.ZIP_DEFLATED),
            "unfolds to 20002 bytes",
        ),
        (zipped(MEMBERS.items(), compression=zipfile.ZIP_BZIP2), "compression method 12"),
        (b"prefix" + archive.encode(MEMBERS), "belong to no member"),
        (b"PK", "damaged ZIP"),
    ],
)
def test_archives_with_other_members_are_refused(content, reason):
    with pytest.raises(LoadError, match=reason):
        unpacked(content, ["assets/"])


def test_every_flipped_bit_and_truncation_of_an_archive_is_seen_or_harmless():
    content = archive.encode(MEMBERS)
    for position in range(len(content)):
        for changed in (flipped(content, position, position % 8), content[:position]):
            try:
                assert unpacked(changed) == MEMBERS
            except LoadError:
                continue


def test_without_the_package_no_file_is_begun(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError):
        tensors.save(tmp_path / "x", ARRAYS)
    assert os.listdir(tmp_path) == []
