"""A log that has lost lines or bits is told; one of an older version is read."""

from pathlib import Path

import pytest
from review_runs import make_run, write_run

from unveil.errors import UnveilError
from unveil.pages.review.log import Log
from unveil.review.corrections import current_state
from unveil.review.decisions import corrected_items
from unveil.review.log import LAST, LOG, Entry, hidden_characters, parse_entries, typed_name
from unveil.runs.reader import load

A, B, C = 2, 3, 4


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Five actions."""
    log = Log(make_run(tmp_path / "run"))
    for number, cluster in enumerate((A, B, C, A, B)):
        log.act("name", {"cluster": cluster, "text": f"name {number} é"}, number)
    return log


def problem(folder: Path) -> str:
    """What is wrong with the log, which review page and export must both say."""
    run, messages = load(folder), []
    for read in (Log, current_state):
        try:
            read(run)
            messages.append("")
        except UnveilError as error:
            messages.append(str(error))
    assert messages[0] == messages[1]
    return messages[0]


def test_every_flipped_bit_is_found_or_changes_nothing(log: Log) -> None:
    whole = log.path.read_bytes()
    assert not problem(log.path.parent)
    original, _ = parse_entries(whole, log.path)
    found = 0
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            entries, _ = parse_entries(bytes(damaged), log.path)
        except UnveilError:
            found += 1
            continue
        if entries != original:  # the last line has lost its end
            log.path.write_bytes(damaged)
            assert "has lost line 5 at its end" in problem(log.path.parent)
    assert found > 8 * len(whole) * 0.98


@pytest.mark.parametrize("missing", range(5))
def test_every_missing_line_is_found(log: Log, missing: int) -> None:
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:missing] + lines[missing + 1 :]))
    said = problem(log.path.parent)
    assert f"line {missing + 1} of" in said if missing < 4 else "has lost line 5 at its end" in said


def test_lines_that_were_numbered_anew_are_found(log: Log) -> None:
    entries, _ = parse_entries(log.path.read_bytes(), log.path)
    kept = [entries[0], *entries[2:]]
    log.path.write_bytes(
        b"".join(Entry(**{**entry.__dict__, "number": number}).line() for number, entry in enumerate(kept, start=1))
    )
    assert "line 2 of" in problem(log.path.parent)


def test_a_log_that_is_gone_is_told_until_that_is_accepted(log: Log) -> None:
    log.path.unlink()
    assert "has lost lines 1 to 5" in problem(log.path.parent)
    with pytest.raises(UnveilError, match="has lost lines 1 to 5"):
        corrected_items(log.path.parent)
    log.path.with_name(LAST).unlink()
    assert not problem(log.path.parent)


def test_a_note_that_is_behind_or_damaged_is_no_obstacle(log: Log) -> None:
    note = log.path.with_name(LAST)
    before = note.read_bytes()
    log.act("accept", {"cluster": A}, 5)
    for content in (before, b"", b"nonsense", before[:7]):  # killed between the line and the note, or while noting
        note.write_bytes(content)
        assert not problem(log.path.parent)
        assert Log(load(log.path.parent)).state.length == 6


def test_a_log_of_an_older_version_is_read_and_continued(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    old = [Entry(number=n, time="", kind="name", data={"cluster": n + 1, "text": f"old {n}"}) for n in (1, 2)]
    (folder / LOG).write_bytes(b"".join(entry.line() for entry in old))
    assert b"sum" not in (folder / LOG).read_bytes()
    log = Log(load(folder))
    assert [log.state.name(A), log.state.name(B)] == ["old 1", "old 2"]
    log.act("name", {"cluster": C, "text": "new"}, 2)
    assert not problem(folder)
    content = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(content.replace(b"old 1", b"old 9"))  # lines without a sum are in the chain too
    assert "line 3 of" in problem(folder)


@pytest.mark.parametrize("kind", [["name"], {}, None, 3, True])
def test_an_action_that_is_no_text_is_a_damaged_line(tmp_path: Path, kind: object) -> None:
    folder = write_run(tmp_path / "run")
    (folder / LOG).write_bytes(Entry(number=1, time="", kind=kind, data={}).line())  # type: ignore[arg-type]
    assert "line 1 of" in problem(folder)


def test_a_log_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (tmp_path / "precious").write_bytes(b"")
    (folder / LOG).symlink_to(tmp_path / "precious")
    (folder / LAST).symlink_to(tmp_path / "precious")
    with pytest.raises(UnveilError, match="is a link"):
        Log(load(folder)).act("accept", {"cluster": A}, 0)
    (folder / LOG).unlink()
    Log(load(folder)).act("accept", {"cluster": A}, 0)
    assert (tmp_path / "precious").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("tabby cat", []),
        ("a\u200bb", ["U+200B"]),  # no width
        ("\u202eexe", ["U+202E"]),  # right to left
        ("cat\u2800", ["U+2800"]),  # a blank that is no space
        ("cat\ue0001\u0378", ["U+0378"]),  # not assigned
        ("a\u200db", ["U+200D"]),  # nothing to join between Latin letters
        ("\u200d\u0915", ["U+200D"]),  # nothing before it
        ("\u0915\u200d", ["U+200D"]),  # nothing behind it
        ("\u0915\u200d\u0937", []),  # Devanagari needs it
        ("\u0645\u200c\u0646", []),  # Persian too
        ("\U0001f468\u200d\U0001f469", []),  # so do families of emoji
        ("\u0915\u200da", ["U+200D"]),
    ],
)
def test_characters_that_cannot_be_seen_are_named(name: str, hidden: list[str]) -> None:
    assert hidden_characters(name) == hidden


def test_all_hidden_characters_are_told() -> None:
    with pytest.raises(UnveilError, match=r"cannot be seen \(U\+200B, U\+202E\): leave them out"):
        typed_name("a\u200b\u202e")


def test_names_are_stored_as_they_are_and_half_characters_escaped() -> None:
    entry = Entry(number=1, time="", kind="name", data={"text": "Käfer \udc80"})
    assert "Käfer \\udc80".encode() in entry.line()
