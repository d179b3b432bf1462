"""Commands for the store of embeddings and finished stages: `unveil cache list | clean`."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from unveil.cli.output import AsJson, print_json, print_table, size_text
from unveil.errors import UnveilError

app = App(name="cache", help="Stored embeddings and pre-training: list them, delete old ones.")


@app.command(name="list")
@app.default
def list_(*, store: Path | None = None, json: AsJson = False) -> None:
    """List what is stored for reuse: kind, size, and when it was last used.

    Parameters
    ----------
    store
        The directory. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    json
        Print JSON.
    """
    from unveil import storage

    folder = store or storage.default_store()
    entries = storage.entries(folder)
    if json:
        print_json({"store": folder, "bytes": sum(e.bytes for e in entries), "entries": [e.to_json() for e in entries]})
        return
    if entries:
        rows = [(entry.folder.name, entry.kind, size_text(entry.bytes), _ago(entry.used)) for entry in entries]
        print_table(("name", "kind", "size", "last used"), rows)
    print(f"{folder}: {len(entries)} entries, {size_text(sum(entry.bytes for entry in entries))}")


@app.command
def clean(
    *,
    older_than: float = 30,
    all_: Annotated[bool, Parameter(name="--all")] = False,
    dry_run: bool = False,
    store: Path | None = None,
    json: AsJson = False,
) -> None:
    """Delete what was not used for a while. It is computed again when it is needed.

    Entries that another process is working in are kept. Run directories and data sets are never touched.

    Parameters
    ----------
    older_than
        Days since the last use.
    all_
        Delete everything, however new.
    dry_run
        Only say what would be deleted.
    store
        The directory. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    json
        Print JSON.
    """
    from unveil import storage

    if older_than < 0:
        raise UnveilError(f"--older-than is {older_than:g}: give a number of days, 0 or more")
    folder = store or storage.default_store()
    limit = time.time() - 86400 * older_than
    old = [entry for entry in storage.entries(folder) if all_ or entry.used < limit]
    gone = old if dry_run else [entry for entry in old if storage.remove(entry)]
    freed = sum(entry.bytes for entry in gone)
    if json:
        print_json({"store": folder, "deleted": not dry_run, "bytes": freed, "entries": [e.to_json() for e in gone]})
        return
    what = "would be deleted" if dry_run else "deleted"
    print(f"{folder}: {len(gone)} entries {what}, {size_text(freed)}")
    if len(gone) < len(old):
        print(f"{len(old) - len(gone)} entries are in use and were kept")


def _ago(when: float) -> str:
    days = int((time.time() - when) / 86400)
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
