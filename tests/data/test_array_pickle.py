"""Pickles of arrays are read as Python reads them, and nothing else can be done with one."""

import pickle
import pickletools
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.data.array_pickle import ForbiddenError, loads

REFUSED = (ForbiddenError, ValueError, TypeError, IndexError, OverflowError, struct.error)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(PLAIN, st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    content = pickle.dumps(value, protocol)
    try:
        found = loads(content)
    except ForbiddenError:  # empty bytes at old protocols are a call of __builtin__.bytes
        assert protocol < 3
        return
    assert found == value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", ["u1", ">i4", "<i8", "f4", "f8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(protocol: int, kind: str, order: Any) -> None:
    array = np.asarray(np.arange(6).reshape(2, 3).astype(kind), order=order)
    found = loads(pickle.dumps({"data": array, "more": [1]}, protocol))
    np.testing.assert_array_equal(found["data"], array)
    assert found["data"].dtype == array.dtype
    assert found["more"] == [1]


SAMPLE = pickle.dumps({"data": np.arange(24, dtype=np.uint8).reshape(2, 12), b"labels": [1, 2, 300, -5]}, 2)


def test_ndarray_itself_cannot_be_called() -> None:
    """The program that once crashed the interpreter: numpy.ndarray((2,), 'O', b"…")."""
    attack = b"cnumpy\nndarray\n(K\x02\x85cnumpy\ndtype\n(U\x01Ottbq\x00"
    for program in (attack + b"R.", b"cnumpy\nndarray\n(K\x02\x85U\x01OU\x10" + b"A" * 16 + b"tR."):
        with pytest.raises(REFUSED):
            loads(program)


@pytest.mark.parametrize("kind", ["O", "|O", "V8", "U3", "S3", "m8", "M8", "c16", "u1,u1", "i16"])
def test_only_numbers_make_an_array(kind: str) -> None:
    name = kind.encode()
    with pytest.raises(ValueError, match="are not read"):
        loads(b"cnumpy\ndtype\n(U" + bytes((len(name),)) + name + b"K\x00K\x01tR.")


def test_an_array_has_as_many_bytes_as_it_says() -> None:
    content = bytes(24)
    assert content not in SAMPLE
    for changed in (SAMPLE.replace(b"K\x02K\x0c", b"K\x03K\x0c"), SAMPLE.replace(b"K\x02K\x0c", b"K\x02K\xff")):
        assert changed != SAMPLE
        with pytest.raises(ValueError, match="an array of shape"):
            loads(changed)


def test_small_programs_take_little_memory_and_end() -> None:
    """Some would go on for ever, or need more memory than there is."""
    tracemalloc.start()
    nested = b"(" + b"t" + b"\x85" * 10 + b"2" * 50  # DUP is not known
    doubled = b"\x80\x02)" + b"q\x00h\x00\x86" * 60  # tuples of 2^60 elements, if anybody counted
    for program in (
        nested + b".",
        doubled + b".",
        b"}" + doubled[2:] + b"K\x01s.",  # as the key of a dictionary, whose hash would take for ever
        b"\x8e" + b"\xff" * 8 + b".",
        b"I" + b"9" * 10**5 + b"\n.",
        b"(" * 10**5 + b".",
        b"cnumpy.core.numeric\n_frombuffer\n(C\x01acnumpy\ndtype\n(U\x02u1tRJ\xff\xff\xff\x7f\x85U\x01CtR.",
    ):
        try:
            loads(program)
        except REFUSED:
            continue
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("seed", range(4))
def test_damaged_programs_give_a_value_or_a_known_error(seed: int) -> None:
    draw = np.random.default_rng(seed)
    codes = [code.code.encode("latin1") for code in pickletools.opcodes]
    for _ in range(1500):
        content = bytearray(SAMPLE)
        for _ in range(int(draw.integers(1, 6))):
            place = int(draw.integers(len(content)))
            match int(draw.integers(4)):
                case 0:
                    content[place] ^= 1 << int(draw.integers(8))
                case 1:
                    content[place:place] = codes[int(draw.integers(len(codes)))]
                case 2:
                    del content[place : place + int(draw.integers(1, 9))]
                case _:
                    content[place:place] = content[: int(draw.integers(40))]
            content = content or bytearray(b".")
        try:
            loads(bytes(content))
        except REFUSED:
            continue


def test_every_program_that_is_cut_off_is_refused() -> None:
    for length in range(len(SAMPLE)):
        with pytest.raises(REFUSED):
            loads(SAMPLE[:length])
