"""Readers and the review page under fuzzed inputs: every outcome is a value or an error that says what is wrong."""

import json
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .outcomes import Outcomes


def fuzzed(samples: list[bytes], draw: random.Random) -> bytes:
    """A sample with flipped bits, foreign bytes, and pieces that are missing, doubled or of another sample."""
    copy = bytearray(draw.choice(samples))
    for _ in range(draw.randrange(1, 6)):
        place = int(len(copy) * draw.random() ** 2)
        match draw.randrange(5):
            case 0 if place < len(copy):
                copy[place] ^= 1 << draw.randrange(8)
            case 1 if place < len(copy):
                copy[place] = draw.choice(b"()[]{}'\"\\\n\x00\xff9,:=-eOLV.")
            case 2:
                del copy[place : place + draw.randrange(1, 20)]
            case 3:
                copy[place:place] = copy[place : place + draw.randrange(1, 20)]
            case _:
                other = draw.choice(samples)
                start = draw.randrange(len(other) + 1)
                copy[place : place + 4] = other[start : start + draw.randrange(1, 40)]
    return bytes(copy)


def readers(folder: Path) -> Iterator[tuple[str, list[bytes], Callable[[Path], object], str]]:
    """(name, samples, the reader of a file, the name of the file)"""
    import pickle

    from PIL import Image

    from unveil import recipe
    from unveil.data.arrays import read_array, read_unlabeled
    from unveil.data.folders import read_omniglot
    from unveil.data.pictures import read_image
    from unveil.data.readers import load_cifar_pickle, read_idx
    from unveil.models.model import Model
    from unveil.review.log import Entry, parse_entries

    def saved(write: Callable[[Path], object], name: str) -> bytes:
        write(folder / name)
        return (folder / name).read_bytes()

    x = np.arange(12, dtype=np.float64).reshape(4, 3)
    y = np.array(["a", "b", "a", "c"])
    npys = [saved(lambda p, a=a: np.save(p, a), "a.npy") for a in (x, x.astype("f4"), np.zeros((2, 4, 4, 3), "u1"), y)]  # type: ignore[misc]
    yield "npy", npys, read_unlabeled, "a.npy"
    npzs = [saved(lambda p, save=save: save(p, X=x, y=y), "a.npz") for save in (np.savez, np.savez_compressed)]  # type: ignore[misc]
    yield "npz", npzs, read_array, "a.npz"
    csvs = [b"id,label,a,b\nx,1,0.5,1e3\ny,2,-1,0\n", 'class,"a,b"\n"q""",3\n'.encode("utf-8-sig")]
    yield "csv", csvs, read_array, "a.csv"
    idx = bytes((0, 0, 8, 1)) + (5).to_bytes(4, "big") + bytes(5)
    yield "idx", [idx], lambda path: read_idx(path, 1), "idx"
    record = {"data": np.zeros((2, 12), np.uint8), b"labels": [1, 2], "names": ["a", b"b"]}
    yield "pickle", [pickle.dumps(record, protocol) for protocol in range(6)], load_cifar_pickle, "batch"
    picture = Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3))
    kinds = ("png", "jpeg", "bmp", "tiff", "webp", "gif")
    images = [saved(lambda p, kind=kind: picture.save(p, format=kind), "a.png") for kind in kinds]  # type: ignore[misc]
    yield "image", images, read_image, "a.png"
    recipes = [recipe.dump(recipe.load(name)).encode() for name in ("digits", "vectors")]
    yield "recipe", recipes, recipe.read, "a.toml"
    entries = [Entry(number=1, time="t", kind="name", data={"cluster": 2, "text": "é"}).chained("")]
    entries.append(Entry(number=2, time="t", kind="undo", data={}).chained(entries[0].sum))
    log = b"".join(entry.line() for entry in entries)
    yield "review log", [log], lambda path: parse_entries(path.read_bytes(), path), "review.jsonl"
    model = _small_model()
    yield "model", [saved(model.save, "a.safetensors")], Model.load, "a.safetensors"
    yield "omniglot", npzs, read_omniglot, "a.npz"
    yield from _further(folder, saved, x)


def _further(folder: Path, saved: Any, x: Any) -> Iterator[tuple[str, list[bytes], Callable[[Path], object], str]]:
    """Readers of what unveil itself writes, and of archives."""
    import io
    import shutil
    import tarfile

    import torch

    from unveil.checksums import load_array, save_array
    from unveil.data.download import extract
    from unveil.runs.reader import read_record
    from unveil.training import checkpoint

    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    state = saved(lambda p: checkpoint.save(p, layer, optimizer, checkpoint.fresh()), "checkpoint.safetensors")
    yield "checkpoint", [state], lambda path: checkpoint.restore(path, layer, optimizer), "checkpoint.safetensors"
    array = saved(lambda p: save_array(p, x), "embeddings.npy")
    yield "embeddings", [array], lambda path: load_array(path, "it is made again"), "embeddings.npy"
    from review_runs import write_run

    record = (write_run(folder / "run") / "record.json").read_bytes()
    yield "record", [record], lambda path: read_record(path.parent), "record.json"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder / "run" / "items.csv", "a/items.csv")

    def unpack(path: Path) -> None:
        extract(path, folder / "unpacked")
        shutil.rmtree(folder / "unpacked")

    yield "archive", [packed.getvalue()], unpack, "a.tar"


def _small_model() -> Any:
    import torch

    from unveil import rng
    from unveil import settings as s
    from unveil.models import build_encoder
    from unveil.models.heads import linear_head
    from unveil.models.model import Model

    draw = rng.generator(0, "faults")
    encoder = build_encoder(s.Encoder(name="mlp", width=4), (3,), draw)
    return Model(encoder, linear_head(encoder.dim, 2, draw), linear_head(encoder.dim, 2, draw), torch.float32)


def fuzz(outcomes: Outcomes, count: int, seed: int) -> None:
    """Give each reader so many inputs: every outcome is a value or an UnveilError."""
    from unveil.errors import UnveilError

    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, samples, read, file in readers(Path(scratch)):
            path = Path(scratch) / file
            for _ in range(count):
                path.write_bytes(fuzzed(samples, draw))
                try:
                    read(path)
                    outcomes.add(f"fuzzed {name}", "read")
                except UnveilError:
                    outcomes.add(f"fuzzed {name}", "refused")
                except Exception as error:
                    outcomes.add(f"fuzzed {name}", "traceback", f"{type(error).__name__}: {error}"[:300])


def fuzz_page(outcomes: Outcomes, count: int, seed: int) -> None:
    """Give the review page so many requests: every answer is one with a status below 500."""
    from review_runs import make_run
    from starlette.testclient import TestClient

    from unveil.pages.review import server
    from unveil.pages.review.guard import KEY_HEADER, Access, allowed_hosts

    draw, host = random.Random(seed), "127.0.0.1:8123"
    with tempfile.TemporaryDirectory() as scratch:
        access = Access(port=8123, hosts=allowed_hosts("127.0.0.1", 8123))
        app = server.application(make_run(Path(scratch) / "run"), access)
        key = access.open_session(access.code)
        headers = {"origin": f"http://{host}", KEY_HEADER: str(key)}
        page = TestClient(app, base_url=f"http://{host}", headers=headers, follow_redirects=False)
        for _ in range(count):
            method, path, body = request(draw)
            try:
                answer = page.request(method, path, content=body)
                outcome = "traceback" if answer.status_code >= 500 else "read" if answer.is_success else "refused"
                outcomes.add("fuzzed review page", outcome, f"{method} {path} {body!r}: {answer.status_code}")
            except Exception as error:
                outcomes.add("fuzzed review page", "traceback", f"{method} {path} {body!r}: {error}"[:400])


PATHS = (
    *("about", "state", "duplicates", "cluster/{}", "rejected", "thumbs?rows={}", "items?rows={}", "item/{}"),
    *("similar/{}", "row/{}", "profile/{}", "queue", "map-state", "labels", "new", "thumbs?rows={},{}&size={}"),
    *("cluster/{}?sort={}&offset={}&limit={}", "similar/{}?count={}", "duplicates?alike={}", "{}"),
)
POSTS = ("action", "action", "action", "undo", "redo", "list", "nearest", "split", "log", "export")
KINDS = ("name", "known", "merge", "split", "move", "reject", "restore", "no", "accept", "undo", "redo", "nonsense")
KEYS = ("cluster", "text", "class", "clusters", "parts", "rows", "to", "question", "reviewed", "count", "do", "row")


def request(draw: random.Random) -> tuple[str, str, bytes | None]:
    """A request as a broken or hostile page might send it."""

    def value(depth: int = 0) -> Any:
        plain = [0, 1, 2, 3, 5, 40, -1, 10**30, 1.5, float("nan"), "", "a", "\ud800", "../x", None, True, "merge"]
        if depth < 3 and draw.random() < 0.3:
            return [value(depth + 1) for _ in range(draw.randrange(4))]
        if depth < 3 and draw.random() < 0.1:
            return {draw.choice(KEYS): value(depth + 1)}
        return draw.choice(plain)

    if draw.random() < 0.4:
        texts = ["0", "1", "3", "40", "-1", "9" * 25, "nan", "x", "", "%00", "..%2f..%2fetc", "1e5", "é", "confidence"]
        path = draw.choice(PATHS)
        return "GET", "/api/" + path.format(*(draw.choice(texts) for _ in range(path.count("{}")))), None
    body = {"kind": draw.choice(KINDS), "base": draw.choice([0, 1, 5, value()])}
    body |= {key: value() for key in draw.sample(KEYS, draw.randrange(6))}
    content = json.dumps(body if draw.random() < 0.95 else value()).encode()
    return "POST", "/api/" + draw.choice(POSTS), fuzzed([content], draw) if draw.random() < 0.2 else content
