"""Whether texts look as if they were not English, by their letters and their most common words."""

import re
from collections.abc import Sequence

from unveil import rng

MOST_TEXTS, MOST_LETTERS = 500, 2000
OTHER_LETTERS = 0.25
"""Share of letters outside of ASCII from which texts are in another script, or full of accents."""
OTHER_WORDS = 0.03
"""Share of the words below from which texts are in another language, where they also outnumber the English ones."""
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = "the of and to is for with on this that i my you it how what do can be are was have not"
_OTHERS = (
    "der die das und ist nicht ich ein eine mit für auf wie den dem "  # German
    "le les des une est pas je pour dans sur avec que qui vous "  # French
    "el los las una por para con como es del mi "  # Spanish
    "os uma não com eu meu você em "  # Portuguese
    "il che di non è per sono gli della mio "  # Italian
    "het een niet ik van voor met op mijn "  # Dutch
    "nie jest się na jak moja mam "  # Polish
    "bir ve bu için ne nasıl "  # Turkish
    "och att det inte jag är som min"  # Swedish
)
ENGLISH, OTHERS = frozenset(_ENGLISH.split()), frozenset(_OTHERS.split())


def look_foreign(texts: Sequence[str]) -> bool:
    """Whether texts look as if they were in another language than English."""
    rows = rng.numpy(0, "languages").permutation(len(texts))[:MOST_TEXTS]
    words = [word for row in rows for word in _WORD.findall(texts[row][:MOST_LETTERS].lower())]
    letters = sum(map(len, words))
    if not letters:
        return False
    if sum(not letter.isascii() for word in words for letter in word) > OTHER_LETTERS * letters:
        return True
    others, english = (sum(word in common for word in words) for common in (OTHERS, ENGLISH))
    return others > OTHER_WORDS * len(words) and others > english
