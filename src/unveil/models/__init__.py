"""Networks: an encoder is a trunk, frozen in discovery, and a tail that trains."""

from unveil.models.encoder import Encoder, build_encoder
from unveil.models.resnet import frozen

__all__ = ["Encoder", "build_encoder", "frozen"]
