"""ZIP archives with a known set of members, read into memory and never unpacked.

`zipfile` reads once both places that describe a member agree, the members account for the whole file, and the sizes fit into
the budget. Reading a member to its end compares its CRC.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping

from ..errors import LoadError
from . import excerpt, refuse_if, refused

_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError, OverflowError)
_HEADER, _END = 30, 22
MOST_MEMBERS = 10_000

Content = bytes | bytearray | memoryview


def encode(members: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive whose members are stored, not compressed, and have no date."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            information = zipfile.ZipInfo(name)
            information.external_attr = 0o644 << 16
            archive.writestr(information, content)
    return buffer.getvalue()


def read(content: Content, file: object, needed: Collection[str], allowed: Collection[str], most: int) -> dict[str, bytes]:
    """The members of an archive.

    Args:
        needed: names that must be there.
        allowed: further names, or beginnings that end with '/', that may be there.
        most: the number of bytes that all members together may have.

    Raises:
        LoadError: for a missing, unknown or repeated member, unusual compression, bytes that belong to none, or a wrong CRC.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            _check_names([member.filename for member in listed], file, needed, allowed)
            _check_extents(listed, archive.start_dir, content, file, most)
            return {member.filename: _read(archive, member, file) for member in listed}
    except LoadError:
        raise
    except _DAMAGED as error:
        raise refused(file, "", f"damaged ZIP archive ({excerpt(error, 100)})") from None


def _check_names(names: list[str], file: object, needed: Collection[str], allowed: Collection[str]) -> None:
    refuse_if(len(names) > MOST_MEMBERS, file, "", f"holds {len(names)} members, at most {MOST_MEMBERS} are allowed")
    folders = tuple(name for name in allowed if name.endswith("/"))
    refuse_if(len(set(names)) != len(names), file, "", "a member appears twice")
    for name in names:
        plain = not name.startswith("/") and "\\" not in name and ".." not in name.split("/") and "\0" not in name
        if not plain or not (name in needed or name in allowed or name.startswith(folders or ("\0",))):
            raise refused(file, excerpt(name), "a member that does not belong there")
    for name in needed:
        refuse_if(name not in names, file, name, "is missing")


def _check_extents(listed: list[zipfile.ZipInfo], start: int, content: Content, file: object, most: int) -> None:
    end = 0
    for member in sorted(listed, key=lambda member: member.header_offset):
        if member.header_offset != end:
            raise refused(file, excerpt(member.filename), f"{member.header_offset - end} bytes before it belong to no member")
        end = _local_end(content, member, file)
    refuse_if(start != end, file, "", f"{start - end} bytes before the list of members belong to none")
    refuse_if(bytes(content[-_END : -_END + 4]) != b"PK\5\6" or any(content[-2:]), file, "", "bytes after its end")
    total = sum(member.file_size for member in listed)
    refuse_if(total > most, file, "", f"unfolds to {total} bytes, at most {most} are allowed; max_bytes= raises the limit")


def _local_end(content: Content, member: zipfile.ZipInfo, file: object) -> int:
    """The end of a member's data, after a check that its own header agrees with the list at the end of the archive."""
    header = bytes(content[member.header_offset : member.header_offset + _HEADER])
    refuse_if(len(header) < _HEADER, file, excerpt(member.filename), "its header is cut off")
    magic, _, flags, method, _, _, crc, packed, size, length, extra = struct.unpack("<4s5H3I2H", header)
    if magic != b"PK\x03\x04" or flags & ~0x806 or member.flag_bits != flags or method != member.compress_type:
        raise refused(file, excerpt(member.filename), "its header and the list of members disagree, or it is encrypted")
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or (method == 0 and member.compress_size != member.file_size):
        raise refused(file, excerpt(member.filename), f"compression method {method}, expected stored or deflated")
    large = 0xFFFFFFFF in (packed, size)  # the numbers are in the extra field of ZIP64, which zipfile has read
    if not large and (crc, packed, size) != (member.CRC, member.compress_size, member.file_size):
        raise refused(file, excerpt(member.filename), "its header and the list of members disagree")
    return member.header_offset + _HEADER + length + extra + member.compress_size


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: object) -> bytes:
    with archive.open(member) as stream:
        data = stream.read(member.file_size + 1)
        if len(data) != member.file_size or stream.read(1):
            raise refused(file, excerpt(member.filename), f"declares {member.file_size} bytes, holds others")
    return data
