"""The data sets of the catalog: where to download each, where it is stored below the root, and its reader."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unveil.data.dataset import Dataset
from unveil.data.folders import read_folder, read_omniglot
from unveil.data.readers import read_cifar10, read_cifar100, read_digits, read_fashion_mnist, read_mnist


def exists_or_gz(path: Path) -> bool:
    """Whether the file or its `.gz` exists."""
    return path.exists() or path.with_name(path.name + ".gz").exists()


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A file to download."""

    url: str
    checksum: str  # `md5:…` or `sha256:…`, as the publisher or torchvision gives it
    into: str  # the folder below the root that it is downloaded or unpacked to
    unpack: bool = False

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True, kw_only=True)
class Location:
    """A location of a data set below the root, and the files that it needs to be complete."""

    path: str
    needs: tuple[str, ...] = ()  # required files or folders in it; a `.gz` of the same name is accepted

    def missing(self, root: Path) -> Path | None:
        """The first required file or folder that does not exist; None if the data set is complete."""
        folder = root / self.path
        if not folder.exists():
            return folder
        return next((folder / name for name in self.needs if not exists_or_gz(folder / name)), None)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set of the catalog."""

    name: str
    description: str
    kind: str  # `images` or `files`, as in `Items.kind`
    read: Callable[[Path], Dataset]
    locations: tuple[Location, ...] = ()
    """Possible locations in order of preference; empty if it comes with an installed package."""
    remotes: tuple[Remote, ...] = ()
    by_hand: str = ""  # how to obtain the data where `get` cannot download it

    def find(self, root: Path) -> Path | None:
        """The first location at which the data set is complete."""
        return next((root / location.path for location in self.locations if location.missing(root) is None), None)


def _idx_entry(name: str, what: str, read: Callable[[Path], Dataset], folder: str, base: str, md5s: str) -> Entry:
    """Four idx files, for whose `.gz` the sums are given in this order."""
    files = [f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return Entry(
        name=name,
        description=f"70,000 {what}, 28x28 gray",
        kind="images",
        read=read,
        locations=(Location(path=folder, needs=tuple(files)),),
        remotes=tuple(
            Remote(url=f"{base}/{file}.gz", checksum=f"md5:{md5}", into=folder)
            for file, md5 in zip(files, md5s.split(), strict=True)
        ),
    )


def _cifar_entry(classes: int, read: Callable[[Path], Dataset], folder: str, needs: tuple[str, ...], md5: str) -> Entry:
    url = f"https://www.cs.toronto.edu/~kriz/cifar-{classes}-python.tar.gz"
    return Entry(
        name=f"cifar{classes}",
        description=f"60,000 photographs in {classes} classes, 32x32 color",
        kind="images",
        read=read,
        locations=(Location(path=folder, needs=needs),),
        remotes=(Remote(url=url, checksum=f"md5:{md5}", into="", unpack=True),),
    )


def _imagenet_entry(name: str, description: str, by_hand: str) -> Entry:
    return Entry(
        name=name,
        description=description,
        kind="files",
        read=partial(read_folder, name=name),
        locations=(Location(path=name, needs=("train", "val")),),
        by_hand=f"{by_hand} it to {{path}}/{{{{train,val}}}}/WNID/*.JPEG",
    )


def _omniglot_part(name: str, md5: str) -> Remote:
    url = f"https://raw.githubusercontent.com/brendenlake/omniglot/master/python/{name}.zip"
    return Remote(url=url, checksum=f"md5:{md5}", into="omniglot-py", unpack=True)


_ENTRIES = (
    Entry(
        name="digits",
        description="1,797 handwritten digits, 8x8 gray; comes with scikit-learn",
        kind="images",
        read=lambda path: read_digits(),
    ),
    _idx_entry(
        "mnist",
        "handwritten digits",
        read_mnist,
        "MNIST/raw",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873 d53e105ee54ea40749a09fcbcd1e9432 "
        "9fb629c4189551a2d022fa330f9573f3 ec29112dd5afa0611ce80d1b7f02629c",
    ),
    _idx_entry(
        "fashion-mnist",
        "pieces of clothing in 10 classes",
        read_fashion_mnist,
        "FashionMNIST/raw",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d 25c81989df183df01b3e8a0aad5dffbe "
        "bef4ecab320f06d8554ea6380940ec79 bb300cfdad3c16e7a12a480ee83cd310",
    ),
    _cifar_entry(
        10,
        read_cifar10,
        "cifar-10-batches-py",
        (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta"),
        "c58f30108f718f92721af3b95e74349a",
    ),
    _cifar_entry(100, read_cifar100, "cifar-100-python", ("train", "test", "meta"), "eb9058c3a382ffc7106e4002c42a8d85"),
    Entry(
        name="omniglot",
        description="32,460 drawings of 1,623 characters in 50 alphabets, 32x32 gray; omniglot:Greek is one alphabet",
        kind="images",
        read=read_omniglot,
        locations=(
            Location(path="omniglot32.npz"),
            Location(path="omniglot-py", needs=("images_background", "images_evaluation")),
        ),
        remotes=(
            _omniglot_part("images_background", "68d2efa1b9178cc56df9314c21c6e718"),
            _omniglot_part("images_evaluation", "6b91aef0f799c5bb55b94e3f2daec811"),
        ),
    ),
    _imagenet_entry(
        "imagenet",
        "1.28 million photographs in 1,000 classes (ILSVRC 2012)",
        "ask at https://image-net.org/download-images and unpack",
    ),
    _imagenet_entry(
        "imagenet20", "3,400 photographs in 20 ImageNet classes, 10 of them dogs", "it is not published: copy"
    ),
)
CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
