"""Cells and saved data sets."""

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from blobs import blobs
from rich.console import Console

from unveil.cli.own import discover
from unveil.data.cells import write_cells
from unveil.data.known_new import read_new, read_task
from unveil.data.sheets import Columns
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.own.run import run_own_data
from unveil.review.export import export, formats_for
from unveil.runs.reader import load


def cells(folder: Path, each: int = 25, pca: bool = True) -> tuple[Path, np.ndarray]:
    x, y = blobs(5, each)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"type {label}" if label < 3 else None for label in y]),
            "depth": np.ones(len(y)),
        },
        index=[f"cell{i}" for i in range(len(y))],
    )
    data = anndata.AnnData(X=np.zeros((len(y), 4), dtype=np.float32) if pca else x, obs=obs)
    if pca:
        data.obsm["X_umap"] = np.zeros((len(y), 2))
        data.obsm["X_pca"] = x
    write_cells(data, folder / "cells.h5ad")
    return folder / "cells.h5ad", y


def test_cells_become_classes_and_go_back_into_their_file(tmp_path: Path) -> None:
    path, y = cells(tmp_path)
    run_own_data(
        path,
        None,
        out=tmp_path / "run",
        stages=tmp_path / "store",
        changes={"rehearsals": 0, "data.n_novel": 2},
        columns=Columns(label="cell_type"),
        console=Console(quiet=True),
    )
    assert "h5ad" in formats_for(load(tmp_path / "run"))
    target = export(tmp_path / "run", "h5ad", None)
    again = anndata.read_h5ad(target)
    assert clustering_accuracy(y, again.obs["unveil_label"].astype(str).to_numpy()) > 0.95
    assert set(again.obs["unveil_kind"]) == {"known", "novel"}
    assert list(again.obs_names) == [f"cell{i}" for i in range(len(y))]
    assert again.obs["unveil_confidence"].between(0, 1).all()


def test_genes_are_read_where_there_are_no_vectors(tmp_path: Path) -> None:
    path, y = cells(tmp_path, each=2, pca=False)
    task = read_task(path, None, Columns(label="cell_type"))
    assert task.items.array.shape == (len(y), blobs(5, 2)[0].shape[1])
    assert task.ids is not None
    assert task.ids[0] == "cell0"
    path.write_bytes(b"no cells")
    with pytest.raises(UnveilError, match="cannot be read as h5ad"):
        read_task(path, None, Columns(label="cell_type"))


def test_a_data_set_that_datasets_saved(tmp_path: Path) -> None:
    table = pa.table({"text": ["a b", "c d", "e f"], "label": [1, 0, -1], "n": [0.5, 1.5, 9.0]})
    with (
        pa.OSFile(str(tmp_path / "data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as out,
    ):
        out.write_table(table)
    features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "n": {"dtype": "float64", "_type": "Value"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    task = read_task(tmp_path, None, Columns(text="text"))
    assert (task.known, task.labels.tolist()) == (("cat", "dog"), [1, 0, -1])
    assert task.items.texts == ("a b", "c d", "e f")
    items, _ = read_new(tmp_path, columns=Columns(text="text"))
    assert items.texts == ("a b", "c d", "e f")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(UnveilError, match="save it again"):
        read_task(tmp_path, None)


def test_one_of_several_data_sets_is_to_be_named(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        for name in ("dataset_info.json", "state.json"):
            (tmp_path / split / name).write_text("{}")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for read in (lambda: read_task(tmp_path, None), lambda: read_new(tmp_path), lambda: discover(tmp_path)):
        with pytest.raises(UnveilError, match=r"holds the data sets test, train: give one of them, as .*/NAME"):
            read()
