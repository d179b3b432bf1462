"""Finding, fetching, checking and loading by name or path."""

import hashlib
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unveil.data import catalog
from unveil.data.catalog import CATALOG, check, data_root, get, load, status
from unveil.data.entries import Remote
from unveil.errors import UnveilError


def write_cifar100(root: Path) -> Path:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for name, count in (("train", 4), ("test", 3)):
        record = {"data": np.zeros((count, 3072), dtype=np.uint8), "fine_labels": [i % 2 for i in range(count)]}
        (folder / name).write_bytes(pickle.dumps(record))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": ["apple", "bear"]}))
    return folder


def write_imagenet(root: Path, name: str) -> Path:
    for split, size in (("train", 12), ("val", 20)):
        path = root / name / split / "n01" / "1.JPEG"
        path.parent.mkdir(parents=True)
        noise = np.random.default_rng(size).integers(0, 256, (30, size, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)  # noise makes the pixels, not the header, most of the file
    return root / name


def test_the_root_is_the_argument_then_the_environment_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path / "env"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root(None) == tmp_path / "env"
    monkeypatch.setenv("UNVEIL_DATA", "~/data")
    assert data_root(None) == tmp_path / "home" / "data"
    monkeypatch.delenv("UNVEIL_DATA")
    assert data_root(None) == tmp_path / "home" / ".cache" / "unveil" / "data"


def test_every_entry_can_be_had_somehow() -> None:
    assert list(CATALOG) == [
        "digits",
        "mnist",
        "fashion-mnist",
        "cifar10",
        "cifar100",
        "omniglot",
        "imagenet",
        "imagenet20",
    ]
    for name, entry in CATALOG.items():
        assert name == entry.name
        assert not entry.locations or entry.remotes or entry.by_hand
        for remote in entry.remotes:
            algorithm, _, digest = remote.checksum.partition(":")
            assert len(digest) == 2 * hashlib.new(algorithm).digest_size


def test_a_name_loads_from_the_root(tmp_path: Path) -> None:
    write_cifar100(tmp_path)
    data = load("cifar100", tmp_path)
    assert (data.name, len(data.train)) == ("cifar100", 4)


def test_digits_need_no_root(tmp_path: Path) -> None:
    assert len(load("digits", tmp_path / "nowhere").train) > 1400
    assert get("digits", tmp_path / "nowhere") is None


def test_a_path_loads_a_folder_or_an_array(tmp_path: Path) -> None:
    folder = write_imagenet(tmp_path, "own")
    np.savez(tmp_path / "own.npz", X=np.zeros((2, 3)), y=[0, 1])
    assert load(str(folder)).train.items.kind == "files"
    assert load(folder).name == "own"
    assert load(tmp_path / "own.npz").train.items.kind == "vectors"


def test_a_name_of_the_catalog_wins_over_a_folder_unless_it_is_written_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_imagenet(tmp_path, "mnist")
    write_imagenet(tmp_path, "own")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnveilError, match="mnist was not found"):
        load("mnist", tmp_path / "root")
    assert load("./mnist").classes == ("n01",)
    assert load(Path("mnist")).classes == ("n01",)
    assert load("own").classes == ("n01",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar-10", "did you mean cifar10?"),
        ("Fashion_MNIST", "did you mean fashion-mnist?"),
        ("wholly-other", "there are digits, mnist"),
        ("mnist:Greek", "no data set 'mnist:Greek'"),
        ("omniglot:", "no data set 'omniglot:'"),
        ("gone/own", "no file or folder gone/own"),
        ("gone.npz", r"no file or folder gone\.npz"),
    ],
)
def test_what_is_not_known_is_an_error_that_helps(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        load(name, tmp_path)


def test_data_that_is_not_there_names_the_path_and_the_remedies(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=rf"looked for {tmp_path}/cifar-100-python; .*get cifar100.*--root"):
        load("cifar100", tmp_path)


def test_data_that_is_there_in_part_names_the_missing_file(tmp_path: Path) -> None:
    (write_cifar100(tmp_path) / "test").unlink()
    with pytest.raises(UnveilError, match=r"looked for .*cifar-100-python/test;"):
        load("cifar100", tmp_path)
    assert {s.entry.name: s.present for s in status(tmp_path)}["cifar100"] is False


def test_omniglot_is_found_in_both_forms_and_filtered(tmp_path: Path) -> None:
    for part, alphabet in (("background", "Greek"), ("evaluation", "Angelic")):
        path = tmp_path / f"omniglot-py/images_{part}/{alphabet}/character01/1.png"
        path.parent.mkdir(parents=True)
        Image.new("L", (105, 105)).save(path)
    assert load("omniglot", tmp_path).classes == ("Greek/character01", "Angelic/character01")
    assert load("omniglot:Angelic", tmp_path).classes == ("Angelic/character01",)
    (tmp_path / "omniglot32.npz").write_bytes(b"preferred, and damaged")
    with pytest.raises(UnveilError, match=r"omniglot32\.npz is not a valid"):
        load("omniglot:Greek", tmp_path)


def test_status_lists_all_with_their_places(tmp_path: Path) -> None:
    folder = write_cifar100(tmp_path)
    lines = {s.entry.name: (s.present, s.path) for s in status(tmp_path)}
    assert list(lines) == list(CATALOG)
    assert lines["cifar100"] == (True, folder)
    assert lines["digits"] == (True, None)
    assert lines["mnist"] == (False, tmp_path / "MNIST" / "raw")


def test_check_counts_everything(tmp_path: Path) -> None:
    write_cifar100(tmp_path)
    assert check("cifar100", tmp_path).splitlines() == [
        "cifar100: 2 classes, images of 32 x 32 x 3",
        "train: 4 items, 2 in every class",
        "test: 3 items, 1 to 2 in a class",
    ]


def test_check_decodes_every_file(tmp_path: Path) -> None:
    folder = write_imagenet(tmp_path, "imagenet20")
    assert "short side of 12 to 20 pixels" in check("imagenet20", tmp_path)
    broken = folder / "val" / "n01" / "1.JPEG"
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.raises(UnveilError, match=r"val/n01/1\.JPEG is not a readable image"):
        check("imagenet20", tmp_path)


def test_check_describes_vectors(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", X=np.zeros((2, 3)), y=[0, 1])
    assert check(tmp_path / "own.npz").startswith("own: 2 classes, vectors of 3 numbers\n")


@pytest.mark.parametrize(("name", "message"), [("imagenet", "image-net.org"), ("imagenet20", "not published")])
def test_get_says_what_to_do_where_it_cannot_download(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(
        UnveilError, match=rf"{name} cannot be downloaded: .*{message}.*{tmp_path}/{name}/{{train,val}}"
    ):
        get(name, tmp_path)


def test_get_leaves_what_is_there_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "download", lambda *args, **options: pytest.fail("downloaded again"))
    folder = write_cifar100(tmp_path)
    assert get("cifar100", tmp_path) == folder


def test_get_downloads_unpacks_and_tidies_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    folder = write_cifar100(home)
    archive = home / "cifar-100-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    remote = Remote(url=archive.as_uri(), checksum=f"md5:{md5}", into="", unpack=True)
    monkeypatch.setitem(CATALOG, "cifar100", replace(CATALOG["cifar100"], remotes=(remote,)))
    seen: list[int] = []
    assert get("cifar100", root, progress=lambda done, total: seen.append(done)) == root / "cifar-100-python"
    assert seen[-1] == archive.stat().st_size
    assert [path.name for path in root.iterdir()] == ["cifar-100-python"]
    assert len(load("cifar100", root).train) == 4


def test_get_fetches_only_the_files_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte").touch()
    (raw / "t10k-labels-idx1-ubyte.gz").touch()
    fetched: list[str] = []

    def pretend(url: str, to: Path, **options: object) -> None:
        fetched.append(url)
        to.touch()

    monkeypatch.setattr(catalog, "download", pretend)
    assert get("mnist", tmp_path) == raw
    assert [url.rsplit("/", 1)[1] for url in fetched] == ["train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"]
