"""Export: which formats a run can have, and what a CSV costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from review_runs import make_run, write_run

from unveil.errors import UnveilError
from unveil.runs.export import FORMATS, IMAGE_FORMATS, export, formats_for


@pytest.mark.parametrize("pictures", ["array", "none"])
def test_only_image_files_can_be_exported_as_folders(tmp_path: Path, pictures: str) -> None:
    run = make_run(tmp_path / "run", pictures=pictures)
    offered = formats_for(run)
    assert set(FORMATS) - set(offered) == set(IMAGE_FORMATS)
    for kind in offered:
        assert export(run.folder, kind, tmp_path / kind).exists()
    for kind in IMAGE_FORMATS:
        with pytest.raises(UnveilError, match="needs image files"):
            export(run.folder, kind, tmp_path / kind)


def test_image_files_can_be_exported_as_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    assert formats_for(run) == tuple(FORMATS)
    for kind in FORMATS:
        assert export(run.folder, kind, tmp_path / kind).exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    assert "parquet" not in formats_for(run)


def test_a_csv_needs_no_torch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", each=300, clusters=4)
    (run / "review.jsonl").write_text('{"number":1,"time":"","kind":"name","data":{"cluster":2,"text":"fox"}}\n')
    code = (
        "import sys; sys.argv = ['unveil', 'export', sys.argv[1]]\n"
        "from unveil.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('torch', 'sklearn', 'scipy', 'PIL') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(run)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.stdout.splitlines()[-1] == "[]", result.stderr
    assert (run / "export-csv.csv").read_text().count(",fox,novel,") == 300
