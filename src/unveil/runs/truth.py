"""The true classes of new items, from the file truth.csv of a run directory, where there is one."""

import csv

from unveil.errors import UnveilError
from unveil.runs.reader import Run


def read_truth(run: Run) -> dict[str, str] | None:
    """The true class by id; None where there is no truth.csv."""
    path = run.folder / "truth.csv"
    if not path.exists():
        return None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file)
            if not {"id", "label"} <= set(lines.fieldnames or ()):
                raise UnveilError(f"{path} has the columns {lines.fieldnames}: give it a first line `id,label`")
            return {line["id"]: line["label"] for line in lines if line["label"]}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnveilError(
            f"{path} cannot be read ({error}): give a UTF-8 table with the columns id and label"
        ) from None
