"""Read a pickle of plain values and numpy arrays of numbers, such as a CIFAR batch, without executing what it says.

A pickle is a program for a small stack machine. Python's own machine runs it, with fewer instructions: those that build
numbers, texts, lists, tuples and dictionaries. Where a program calls one of the four functions that rebuild an array,
the array is made here from its bytes, after its type and its size have been checked; nothing of numpy is called.
"""

import io
import math
import pickle
import re
import struct
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")  # types of arrays that are read: numbers of a fixed size
# of Python's machine, what calls, registers or copies: PERSID BINPERSID EXT1 EXT2 EXT4 INST OBJ NEWOBJ NEWOBJ_EX
_FORBIDDEN = set(b"PQ\x82\x83\x84io\x81\x92\x8f\x90\x912")  # EMPTY_SET ADDITEMS FROZENSET DUP


class ForbiddenError(Exception):
    """The program names something that is no part of an array."""


class _Type:
    """The type of an array."""

    def __init__(self, name: Any, *_: Any) -> None:
        if not NUMBERS.fullmatch(_text(name)):
            raise ValueError(f"arrays of type {_text(name)!r} are not read")
        self.dtype = np.dtype(_text(name))

    def build(self, state: Any) -> None:
        """(version, byte order, …)"""
        if (order := _text(state[1])) not in ("<", ">", "|", "="):
            raise ValueError(f"unknown byte order {order!r}")
        self.dtype = np.dtype(f"{order}{self.dtype.kind}{self.dtype.itemsize}")


class _Array:
    """An array that a BUILD instruction fills."""

    def __init__(self, *_: Any) -> None:
        self.value: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        """(version, shape, type, Fortran order, bytes)"""
        _, shape, kind, fortran, content = state
        self.value = _array_of(content, kind, shape, "F" if fortran else "C")


def _array_of(content: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    """An array of these bytes, which must be as many as its type and shape need."""
    if not isinstance(kind, _Type) or not isinstance(content, bytes | bytearray):
        raise ValueError("an array without type or bytes")
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 2**40 for size in shape):
        raise ValueError("an array without a shape")
    if len(shape) > 8 or math.prod(shape) * kind.dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {shape[:8]} in {len(content)} bytes")
    return np.frombuffer(bytes(content), dtype=kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """The bytes of a text, as pickles of protocol 2 hold them."""
    if not isinstance(text, str) or _text(encoding) != "latin1":
        raise ValueError(f"unexpected encoding {_text(encoding)!r}")
    return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value if isinstance(value, str) else ""


NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): None,  # named, never called
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
    **{(f"{core}.multiarray", "_reconstruct"): _Array for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.numeric", "_frombuffer"): _array_of for core in ("numpy.core", "numpy._core")},
}
"""What a program may name, by the names of numpy before and since version 2, and what is called in its place."""


class _Machine(pickle._Unpickler):
    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NAMES:
            raise ForbiddenError(f"{module}.{name}")
        return NAMES[module, name]

    def reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not any(function is known for known in NAMES.values()) or function is None:
            raise ValueError("a call of something that is no function")
        self.stack.append(function(*arguments))

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, _Type | _Array):
            raise ValueError("a state of something that has none")
        target.build(state)

    def set_items(self, values: list[Any]) -> None:
        if not all(isinstance(key, str | bytes | int) for key in values[::2]):  # a tuple's hash may take for ever
            raise ValueError("a key that is neither text nor number")
        if not isinstance(self.stack[-1], dict):
            raise ValueError("a dictionary is missing")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def new_dictionary(self) -> None:
        values = self.pop_mark()  # type: ignore[attr-defined]
        self.stack.append({})
        self.set_items(values)

    def byte_array(self) -> None:
        self.stack.append(bytearray(self.read(struct.unpack("<Q", self.read(8))[0])))  # type: ignore[attr-defined]

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **{code: load for code, load in pickle._Unpickler.dispatch.items() if code not in _FORBIDDEN},
        pickle.REDUCE[0]: reduce,
        pickle.BUILD[0]: build,
        pickle.DICT[0]: new_dictionary,
        pickle.SETITEM[0]: lambda self: self.set_items([self.stack.pop(), self.stack.pop()][::-1]),
        pickle.SETITEMS[0]: lambda self: self.set_items(self.pop_mark()),
        pickle.BYTEARRAY8[0]: byte_array,
        pickle.READONLY_BUFFER[0]: lambda self: None,
    }


def loads(content: bytes) -> Any:
    """The value of a pickle; ForbiddenError where it names what it may not, ValueError where it is none."""
    try:
        value = _Machine(io.BytesIO(content), encoding="bytes").load()
    except (ForbiddenError, ValueError):
        raise
    except Exception as error:  # a damaged program can raise nearly anything
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if isinstance(value, dict):
        return {key: item.value if isinstance(item, _Array) else item for key, item in value.items()}
    return value.value if isinstance(value, _Array) else value
