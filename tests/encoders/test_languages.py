"""Whether texts are English, by simple evidence."""

import pytest

from unveil.encoders.languages import look_foreign

FOREIGN = {
    "German": ["meine Karte wurde gestohlen", "wie wird das Wetter morgen", "ich möchte Geld überweisen"],
    "French": ["ma carte a été volée", "je ne peux pas payer", "quel temps fait-il dans les montagnes"],
    "Spanish": ["me robaron la tarjeta", "qué tiempo hace en el norte", "quiero pagar por la compra"],
    "Russian": ["у меня украли карту", "какая завтра погода"],
    "Japanese": ["カードが盗まれました", "明日の天気は"],
}
ENGLISH = {
    "sentences": ["my card was stolen", "what is the weather like tomorrow", "a café in El Paso and Los Angeles"],
    "titles": ["Haskell type error", "Qt widget resize", "Oracle insert slow"],
    "part numbers": ["AB-12 X9", "77 red"],
    "nothing": ["", "12 34"],
}


@pytest.mark.parametrize("language", FOREIGN)
def test_other_languages(language: str) -> None:
    assert look_foreign(FOREIGN[language])


@pytest.mark.parametrize("what", ENGLISH)
def test_english(what: str) -> None:
    assert not look_foreign(ENGLISH[what])


def test_many_texts_are_sampled() -> None:
    assert look_foreign(FOREIGN["German"] * 10_000)
    assert not look_foreign(ENGLISH["sentences"] * 10_000 + FOREIGN["German"] * 100)
