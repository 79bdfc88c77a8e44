"""Count the records of a serialised model without parsing it.

Why: an empty node takes 2 bytes in the file and about 150 once parsed, so a hostile file of moderate size would fill
the memory. The walk follows the schema and steps over payloads, so its cost is that of the structure, not the weights.
"""

from typing import Final

import onnx
from google.protobuf.descriptor import Descriptor, FieldDescriptor

MAX_RECORDS: Final = 2_000_000
"""Messages and strings of one model; the largest model of 2 GiB seen in practice has about 200,000."""

_LENGTH_DELIMITED: Final = 2
_FIXED_BYTES: Final = {1: 8, 5: 4}


class _Malformed(Exception):  # noqa: N818  (control flow inside this module)
    """The bytes are not well-formed; the real parser says so better."""


def too_many_records(data: bytes, limit: int = MAX_RECORDS) -> bool:
    """Whether `data`, read as a `ModelProto`, holds more than `limit` messages and strings.

    Malformed bytes give False: parsing them fails anyway.
    """
    try:
        return _count(data, limit) > limit
    except _Malformed:
        return False


def _count(data: bytes, limit: int) -> int:
    """Records in `data`; stops one above `limit`."""
    schemas: dict[str, dict[int, Descriptor | None]] = {}
    todo: list[tuple[int, int, Descriptor]] = [(0, len(data), onnx.ModelProto.DESCRIPTOR)]
    count = 0
    while todo:
        position, end, descriptor = todo.pop()
        fields = schemas.get(descriptor.full_name)
        if fields is None:
            fields = schemas[descriptor.full_name] = _records(descriptor)
        while position < end:
            tag, position = _varint(data, position, end)
            wire = tag & 7
            if wire != _LENGTH_DELIMITED:
                position = _skip(data, position, end, wire)
                continue
            size, position = _varint(data, position, end)
            if position + size > end:
                raise _Malformed
            if tag >> 3 in fields:
                count += 1
                if count > limit:
                    return count
                child = fields[tag >> 3]
                if child is not None and size:
                    todo.append((position, position + size, child))
            position += size
    return count


def _records(descriptor: Descriptor) -> dict[int, Descriptor | None]:
    """Field number -> message type, or None for a string or bytes field."""
    wanted = (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    return {field.number: field.message_type for field in descriptor.fields if field.type in wanted}


def _skip(data: bytes, position: int, end: int, wire: int) -> int:
    """Position behind a field that is not length-delimited."""
    if wire == 0:
        return _varint(data, position, end)[1]
    if wire not in _FIXED_BYTES or position + _FIXED_BYTES[wire] > end:
        raise _Malformed
    return position + _FIXED_BYTES[wire]


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """(value, position behind it) of a base-128 integer of at most 10 bytes."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise _Malformed
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _Malformed
