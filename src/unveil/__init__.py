"""unveil: given labelled data of known classes and unlabelled data of classes nobody has named, find the new classes."""

__version__ = "0.1.0"
