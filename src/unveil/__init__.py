"""unveil: given labelled data of known classes and unlabelled data of unnamed ones, find the new classes."""

__version__ = "0.1.0"
