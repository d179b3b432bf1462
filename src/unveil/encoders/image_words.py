"""Words for images, by an encoder that has learned from captions (CLIP and its like). Names are suggested from them."""

from collections.abc import Sequence

import numpy as np
import torch

from unveil.encoders.pretrained import made, package
from unveil.numerics import Matrix

FAMILY = "transformers:"
PER_IMAGE = 3
"""Words of an image."""
CAPTION = "a photo of a {}"
_WORDS = """
airplane ambulance ant antelope apple arm backpack bag ball balloon banana bark barn basket bat bathroom beach bear
bed bedroom bee beetle bench berry bicycle bird boat bone book boot bottle bowl box branch bread bridge brush bucket
building bus butterfly cabinet cactus cake camel camera candle canyon car carpet carrot castle cat caterpillar cattle
cave cell chair cheese chicken child chimpanzee church circle city clock cloth cloud coast coat coffee coin computer
concrete coral corn couch cow crab crack crane crocodile crowd cup curtain damage deer desert desk diagram dinosaur
dog dolphin donkey door dragonfly drawing dress drum duck dust eagle ear earth egg elephant engine eye face factory
farm feather fence field fire fish flag flamingo floor flower fly food foot forest fork fountain fox frog fruit fungus
furniture garden gate giraffe girl glacier glass glove goat goose grain grape graph grass grasshopper guitar gull hair
hammer hamster hand handwriting harbor hat hawk head hedgehog helicopter helmet hill hippopotamus hole horse hospital
house hummingbird ice insect instrument island jacket jar jellyfish kangaroo key keyboard kitchen kite knife koala
lake lamp landscape laptop leaf leg lemon leopard letter lighthouse lion liver lizard lobster logo lung machine man
map mask meadow meal meat medicine metal microscope mirror monkey moon moose mosquito moss moth motorcycle mountain
mouse mouth muscle mushroom nail neck necklace nest newspaper night number nut ocean octopus office onion orange
orchid ostrich owl painting palm pan panda paper park parking parrot peacock pear pen pencil penguin people pepper
person phone piano picture pig pigeon pillow pine pipe pizza plane plant plate pond porcupine portrait poster pot
potato pumpkin puppy rabbit raccoon radio railway rain raspberry rat ray receipt rice ring river road robot rock
rocket roof room rooster rope rose ruler rust sail salad sand sandwich satellite scan scarf school scissors scorpion
screen screw sea seal seed shark sheep shelf shell ship shirt shoe shop shower sign skin skirt skull skunk sky
skyscraper slope snail snake snow sock sofa soil spider spoon squid squirrel stadium stairs star starfish statue stone
stork storm stove strawberry street sun sunflower swan symbol table tank taxi tea teeth telephone television tent text
texture tie tiger tissue toilet tomato tool tooth tower toy tractor traffic train trash tree triangle truck trumpet
tulip tunnel turtle umbrella valley van vase vegetable vehicle village vine violin volcano wall watch water waterfall
watermelon wave weed whale wheat wheel window wine wing wolf woman wood worm wound x-ray yard zebra
"""
WORDS = tuple(_WORDS.split())
"""What photographs and scans show: names of image classes are looked for among these."""


@torch.no_grad()
def image_words(encoder: str | None, vectors: Matrix, known: Sequence[str] = ()) -> list[str]:
    """(n,): the words that fit each image best; empty where the encoder cannot read words.

    `vectors`: what the encoder made of the images. `known`: names of classes, which are tried as words too.
    """
    if encoder is None or not encoder.startswith(FAMILY) or not len(vectors):
        return []
    name = encoder.removeprefix(FAMILY)
    transformers = package("transformers")
    model = made(encoder, lambda: transformers.AutoModel.from_pretrained(name)).eval()
    if not hasattr(model, "get_text_features"):
        return []
    words = list(dict.fromkeys([*known, *WORDS]))
    tokenizer = made(encoder, lambda: transformers.AutoTokenizer.from_pretrained(name))
    tokens = tokenizer([CAPTION.format(word) for word in words], padding=True, return_tensors="pt")
    found = model.get_text_features(**tokens)
    captions = torch.nn.functional.normalize(getattr(found, "pooler_output", found).float(), dim=1)  # (w, D)
    images = torch.from_numpy(np.array(vectors, dtype=np.float32))
    if hasattr(model, "visual_projection"):
        images = model.visual_projection(images)
    if images.shape[1] != captions.shape[1]:
        return []
    best = (torch.nn.functional.normalize(images, dim=1) @ captions.T).topk(min(PER_IMAGE, len(words)), dim=1)
    return [" ".join(words[place] for place in row) for row in best.indices.tolist()]
