"""Read user data as a task: KNOWN has labels, NEW has none; or one table whose new rows have an empty label."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unveil.data import arrays
from unveil.data.catalog import load
from unveil.data.cells import check_one_split
from unveil.data.folders import EXTENSIONS, image_files
from unveil.data.items import Items
from unveil.data.readers import item_ids
from unveil.data.sheets import Columns, Sheet, items_of, matrix_of, read_labeled, read_sheet
from unveil.data.table import Table, listed
from unveil.data.table_files import is_table
from unveil.data.task import UNLABELED, Task
from unveil.data.text_folders import holds_texts, read_text_folder, read_texts
from unveil.errors import UnveilError

USUAL = Columns()


def read_task(known: Path, new: Path | None, columns: Columns = USUAL) -> Task:
    """The items of KNOWN, then those of NEW, which must be of the same kind.

    Without NEW: those of KNOWN alone, of a table the labeled rows first, then those with an empty label.
    """
    for path in (known, *(() if new is None else (new,))):
        check_one_split(path)
    if is_table(known) and (new is None or is_table(new)):
        return _table_task(known, new, columns)
    if columns.any_named and not is_table(known):
        raise UnveilError(f"{known} is no table: --text, --label, --id and --columns name columns of one; omit them")
    if is_table(known):
        labeled = read_labeled(known, columns)
    else:
        labeled = read_text_folder(known) if known.is_dir() and holds_texts(known) else load(str(known))
    items, ids, labels = labeled.train.items, labeled.train.ids, labeled.train.labels
    name = known.resolve().stem
    if new is not None:
        others, new_ids = read_new(new, labeled.columns, columns)
        check_alike(items, others, known, new)
        name, items, ids = f"{name}-{new.resolve().stem}", items.and_then(others), (*ids, *own_ids(new_ids, ids))
        labels = np.concatenate([labels, np.full(len(others), UNLABELED)])
    return Task(name=name, items=items, ids=ids, labels=labels, known=labeled.classes, columns=labeled.columns)


def _table_task(known: Path, new: Path | None, columns: Columns) -> Task:
    """The rows of one or two tables. What a column holds is judged by all of them together."""
    sheet, others = read_sheet(known, columns, labeled=True), None
    assert sheet.labels is not None
    if new is not None:
        classes, labels = arrays.encode(sheet.labels, str(known))
        others = read_sheet(new, columns, labeled=False)
        table = sheet.table.and_then(in_order(others.table, sheet.table.names, new))
        labels = np.concatenate([labels, np.full(len(others.table), UNLABELED)])
        ids = (*(sheet.ids or item_ids("train", len(sheet.table))),)
        ids += (*own_ids(others.ids or item_ids("new", len(others.table)), ids),)
        name = f"{known.resolve().stem}-{new.resolve().stem}"
    else:
        sheet, classes, labels, ids = _one_file(sheet, known)
        table, name = sheet.table, known.resolve().stem
    items, names, notes = items_of(table, columns, known)
    return Task(name=name, items=items, ids=ids, labels=labels, known=classes, columns=names, notes=tuple(notes))


def _one_file(sheet: Sheet, path: Path) -> tuple[Sheet, tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """The rows with a label first, then the others."""
    assert sheet.labels is not None
    known = [row for row, label in enumerate(sheet.labels) if label]
    new = [row for row, label in enumerate(sheet.labels) if not label]
    if not known:
        raise UnveilError(f"{path}: no row has a label; fill in those of the known classes")
    classes, labels = arrays.encode([sheet.labels[row] for row in known], str(path))
    names = sheet.ids or item_ids("row" if new else "train", len(sheet.table))
    ids = tuple(names[row] for row in (*known, *new))
    return sheet[[*known, *new]], classes, np.concatenate([labels, np.full(len(new), UNLABELED)]), ids


def in_order(table: Table, wanted: Sequence[str], path: Path, *, others_allowed: bool = False) -> Table:
    """The table with the columns of the known items alone, in their order."""
    order = column_order(table.names, wanted, path, others_allowed=others_allowed)
    return table if isinstance(order, slice) else table.only(table.names[place] for place in order)


def own_ids(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of new items; one that a known item has too gets `new/` before it, as often as needed."""
    known, used, own = set(taken), {*taken, *names}, []
    for name in names:
        unique = name
        while name in known and unique in used:
            unique = f"new/{unique}"
        used.add(unique)
        own.append(unique)
    return own


def read_new(
    path: Path,
    names: Sequence[str] = (),
    columns: Columns = USUAL,
    *,
    as_table: bool = False,
    others_allowed: bool = False,
) -> tuple[Items, tuple[str, ...]]:
    """Items without labels: a folder of images or texts, however nested, one image, an array, or a table.

    names: the columns that the known items have; those of a table are put into their order. as_table: leave them as
    they are, to be encoded. others_allowed: the table may have more columns.
    """
    check_one_split(path)
    if path.is_dir() and not is_table(path):
        if holds_texts(path):
            return read_texts(path)
        files = image_files(path)
        if not files:
            kinds = " ".join(sorted(EXTENSIONS))
            raise UnveilError(f"{path} holds no images ({kinds}) and no texts (.txt): give a folder with some")
        return Items.of(files), tuple(file.relative_to(path).as_posix() for file in files)
    if not path.exists():
        raise UnveilError(f"there is no file or folder {path}")
    if path.suffix.lower() in EXTENSIONS:
        return Items.of((path,)), (path.name,)
    if not is_table(path):
        items = arrays.read_unlabeled(path)
        return items, item_ids("new", len(items))
    sheet = read_sheet(path, columns, labeled=False)
    ids = sheet.ids or item_ids("new", len(sheet.table))
    if as_table:
        return Items("table", sheet.table), ids
    if sheet.table.text is not None or not (names or others_allowed):
        return items_of(sheet.table, columns, path)[0], ids
    if not names:  # the fit was on arrays: every column of numbers counts, also one that is constant here
        numbers = [name for name, column in sheet.table.columns.items() if column.dtype != object and column.ndim == 1]
        items = Items.of(matrix_of(sheet.table, numbers, path)) if numbers else items_of(sheet.table, columns, path)[0]
        return items, ids
    table = in_order(sheet.table, names, path, others_allowed=others_allowed)
    return Items.of(matrix_of(table, table.names, path)), ids


def column_order(
    given: Sequence[str], wanted: Sequence[str], path: Path, *, others_allowed: bool = False
) -> list[int] | slice:
    """Index of each wanted column among the given ones; no reordering where either side lacks or repeats names."""
    if not given or not wanted or len(set(wanted)) < len(wanted) or len(set(given)) < len(given):
        return slice(None)
    index_of = {name: index for index, name in enumerate(given)}
    missing = [name for name in wanted if name not in index_of]
    expected = set(wanted)
    extra = [] if others_allowed else [name for name in given if name not in expected]
    if missing or extra:
        problems = [f"lacks {listed([repr(name) for name in missing], 5)}"] if missing else []
        problems += [f"has {listed([repr(name) for name in extra], 5)}, which known items do not have"] if extra else []
        raise UnveilError(f"{path} {' and '.join(problems)}: give the same columns to known and new items")
    return [index_of[name] for name in wanted]


def check_alike(known_items: Items, new_items: Items, known: Path, new: Path) -> None:
    """Raise an error unless both are folders of one kind, or arrays whose items have the same type and shape."""
    if not (known_items.in_array and new_items.in_array):
        first, second = known_items.given_as, new_items.given_as
        if first == second and not known_items.are_table:
            return
        raise UnveilError(f"{known} is {first} and {new} is {second}: give two of one kind")
    x, others = known_items.array, new_items.array
    if x.dtype.kind != others.dtype.kind or x.shape[1:] != others.shape[1:]:
        what = [f"{array.dtype} {array.shape[1:]}" for array in (x, others)]
        raise UnveilError(
            f"an item of {known} is {what[0]}, one of {new} is {what[1]}: give items of one kind and size"
        )
