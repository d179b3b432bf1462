"""Novel class discovery: find new classes in unlabelled data, given labelled data of known classes."""

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Import `NovelClassDiscovery` on first use: torch and scikit-learn are slow to import."""
    if name == "NovelClassDiscovery":
        from unveil.discovery.estimator import NovelClassDiscovery

        return NovelClassDiscovery
    raise AttributeError(f"module 'unveil' has no attribute {name!r}")
