"""Novel class discovery: find new classes in unlabeled data, given labeled data of known classes."""

from importlib import import_module

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Import `NovelClassDiscovery` on first use: torch and scikit-learn are slow to import."""
    if name == "NovelClassDiscovery":
        return import_module("unveil.own.estimator").NovelClassDiscovery
    raise AttributeError(f"module 'unveil' has no attribute {name!r}")
