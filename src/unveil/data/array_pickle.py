"""Read a pickle of plain values and numpy arrays of numbers, such as a CIFAR batch, without unpickling it.

A pickle is a program for a small stack machine. This machine knows the instructions that build numbers, texts, lists,
tuples and dictionaries. Where a program calls one of the four functions that rebuild an array, the array is made here
from its bytes, after its type and its size have been checked; nothing that a file names is ever called.
"""

import codecs
import math
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECONSTRUCT, FROM_BUFFER, DTYPE, ENCODE, NDARRAY = "reconstruct", "from buffer", "dtype", "encode", "ndarray"
NAMES = {
    ("numpy", "ndarray"): NDARRAY,
    ("numpy", "dtype"): DTYPE,
    ("_codecs", "encode"): ENCODE,
    **{(f"{core}.multiarray", "_reconstruct"): RECONSTRUCT for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.numeric", "_frombuffer"): FROM_BUFFER for core in ("numpy.core", "numpy._core")},
}
"""What a program may name: the names of numpy before and since version 2."""
NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
"""Types of arrays that are read: numbers of a fixed size."""


class ForbiddenError(Exception):
    """The program names something that is no part of an array."""


class _Mark:
    """The bottom of a list of values on the stack."""


class _Type:
    """The type of an array."""

    def __init__(self, name: str) -> None:
        if not NUMBERS.fullmatch(name):
            raise ValueError(f"arrays of type {name!r} are not read")
        self.dtype = np.dtype(name)

    def build(self, state: Any) -> None:
        """(version, byte order, …)"""
        order = _text(state[1])
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"unknown byte order {order!r}")
        self.dtype = np.dtype(f"{order}{self.dtype.kind}{self.dtype.itemsize}")


class _Array:
    """An array that a BUILD instruction fills."""

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        """(version, shape, type, Fortran order, bytes)"""
        _, shape, kind, fortran, content = state
        self.value = array_of(content, kind, shape, "F" if fortran else "C")


def array_of(content: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    """An array of these bytes, which must be as many as its type and shape need."""
    if not isinstance(kind, _Type) or not isinstance(content, bytes | bytearray):
        raise ValueError("an array without type or bytes")
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 2**40 for size in shape):
        raise ValueError("an array without a shape")
    if len(shape) > 8 or math.prod(shape) * kind.dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {shape[:8]} in {len(content)} bytes")
    return np.frombuffer(bytes(content), dtype=kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def loads(content: bytes) -> Any:
    """The value of a pickle; ForbiddenError where it names what it may not, ValueError or the like where it is none."""
    return _Machine(content).run()


class _Machine:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        while (code := self.take(1)) != b".":
            if (instruction := _INSTRUCTIONS.get(code)) is None:
                raise ValueError(f"unknown instruction {code!r} at byte {self.position - 1}")
            instruction(self)
        return _finished(self.pop())

    def take(self, count: int) -> bytes:
        """The next bytes of the program."""
        piece = self.content[self.position : self.position + count]
        if len(piece) < count:
            raise ValueError("it is cut off")
        self.position += count
        return piece

    def line(self) -> bytes:
        """The rest of the line."""
        end = self.content.find(b"\n", self.position)
        if end < 0:
            raise ValueError("it is cut off")
        piece, self.position = self.content[self.position : end], end + 1
        return piece

    def number(self, form: str) -> int:
        """The next number, as `struct` names its form."""
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if isinstance(value, _Mark):
            raise ValueError("a value is missing")
        return value

    def above_mark(self) -> list[Any]:
        """The values above the last mark, which are taken off the stack."""
        place = next((i for i in range(len(self.stack) - 1, -1, -1) if isinstance(self.stack[i], _Mark)), None)
        if place is None:
            raise ValueError("a mark is missing")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def name(self, module: str, name: str) -> None:
        if (module, name) not in NAMES:
            raise ForbiddenError(f"{module}.{name}")
        self.push(_Name(NAMES[module, name]))

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise ValueError("a call of something that is no function")
        self.push(_CALLS[function.meaning](*arguments))

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        if not isinstance(target, _Type | _Array) or not isinstance(state, tuple):
            raise ValueError("a state of something that has none")
        target.build(state)

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise ValueError("a list is missing")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise ValueError("a dictionary is missing")
        target.update(_pairs(values))

    def get(self, key: int) -> None:
        if key not in self.memo:
            raise ValueError(f"value {key} was not stored")
        self.push(self.memo[key])

    def put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]


class _Name:
    """A name that the program has looked up."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise ValueError("a value is missing in a dictionary")
    keys = values[::2]
    if not all(isinstance(key, str | bytes | int) for key in keys):  # the hash of nested tuples may take for ever
        raise ValueError("a key that is neither text nor number")
    return dict(zip(keys, values[1::2], strict=True))


def _finished(value: Any) -> Any:
    """The value with the arrays in place of what they were made from, in a dictionary's values too."""
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, dict):
        return {key: item.value if isinstance(item, _Array) else item for key, item in value.items()}
    return value


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value) if isinstance(value, str) else ""


def _make_type(name: Any, *_: Any) -> _Type:
    return _Type(_text(name))


def _make_array(*_: Any) -> _Array:
    return _Array()


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any, *_: Any) -> NDArray[Any]:
    return array_of(content, kind, shape, order)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """The bytes of a text, as pickles of protocol 2 hold them."""
    if not isinstance(text, str) or _text(encoding) != "latin1":
        raise ValueError(f"unexpected encoding {_text(encoding)!r}")
    return text.encode("latin1")


def _forbidden(*_: Any) -> Any:
    raise ForbiddenError("numpy.ndarray as a function")


_CALLS: dict[str, Callable[..., Any]] = {
    RECONSTRUCT: _make_array,
    FROM_BUFFER: _from_buffer,
    DTYPE: _make_type,
    ENCODE: _encode,
    NDARRAY: _forbidden,
}


def _decimal(line: bytes) -> int | bool:
    """The argument of INT or LONG; 00 and 01 are false and true."""
    text = line.rstrip(b"L").decode("ascii")
    return text == "01" if text in ("00", "01") else int(text)


def _quoted(line: bytes) -> bytes:
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"'\"":
        raise ValueError("a string without quotes")
    content: bytes = codecs.escape_decode(line[1:-1])[0]
    return content


def _utf8(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def _stack_global(machine: _Machine) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError("a name that is no text")
    machine.name(module, name)


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    def instruction(machine: _Machine) -> None:
        values = [machine.pop() for _ in range(count)]
        machine.push(tuple(reversed(values)))

    return instruction


def _one_item(machine: _Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


_INSTRUCTIONS: dict[bytes, Callable[[_Machine], Any]] = {
    # the program itself
    b"\x80": lambda m: m.take(1),  # PROTO
    b"\x95": lambda m: m.take(8),  # FRAME
    b"(": lambda m: m.push(_Mark()),
    b"0": lambda m: m.pop(),
    # values
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"I": lambda m: m.push(_decimal(m.line())),
    b"L": lambda m: m.push(_decimal(m.line())),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": lambda m: m.push(int.from_bytes(m.take(m.number("<B")), "little", signed=True)),  # LONG1
    b"F": lambda m: m.push(float(m.line())),
    b"G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    b"S": lambda m: m.push(_quoted(m.line())),  # strings of Python 2 are bytes
    b"T": lambda m: m.push(m.take(m.number("<I"))),
    b"U": lambda m: m.push(m.take(m.number("<B"))),
    b"B": lambda m: m.push(m.take(m.number("<I"))),
    b"C": lambda m: m.push(m.take(m.number("<B"))),
    b"\x8e": lambda m: m.push(m.take(m.number("<Q"))),  # BINBYTES8
    b"\x96": lambda m: m.push(bytearray(m.take(m.number("<Q")))),  # BYTEARRAY8
    b"V": lambda m: m.push(m.line().decode("raw-unicode-escape")),
    b"X": lambda m: m.push(_utf8(m.take(m.number("<I")))),
    b"\x8c": lambda m: m.push(_utf8(m.take(m.number("<B")))),
    b"\x8d": lambda m: m.push(_utf8(m.take(m.number("<Q")))),
    # lists, tuples and dictionaries
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.above_mark()),
    b"a": lambda m: m.append([m.pop()]),
    b"e": lambda m: m.append(m.above_mark()),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.above_mark())),
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"}": lambda m: m.push({}),
    b"d": lambda m: m.push(_pairs(m.above_mark())),
    b"s": _one_item,
    b"u": lambda m: m.set_items(m.above_mark()),
    # values that are used again
    b"p": lambda m: m.put(int(m.line())),
    b"q": lambda m: m.put(m.number("<B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"g": lambda m: m.get(int(m.line())),
    b"h": lambda m: m.get(m.number("<B")),
    b"j": lambda m: m.get(m.number("<I")),
    # arrays
    b"c": lambda m: m.name(m.line().decode("utf-8"), m.line().decode("utf-8")),
    b"\x93": _stack_global,
    b"R": lambda m: m.reduce(),
    b"b": lambda m: m.build(),
    b"\x98": lambda m: None,  # READONLY_BUFFER
}
