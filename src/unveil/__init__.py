"""unveil: given labelled data of known classes and unlabelled data of unnamed ones, find the new classes."""

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """`NovelClassDiscovery` is imported when it is asked for: torch and scikit-learn take their time."""
    if name == "NovelClassDiscovery":
        from unveil.discovery.estimator import NovelClassDiscovery

        return NovelClassDiscovery
    raise AttributeError(f"module 'unveil' has no attribute {name!r}")
