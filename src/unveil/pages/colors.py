"""The colors of classes, the same in the report and on the review page, for light and dark screens."""

GOLDEN_ANGLE = 137.508
"""Degrees between the hues of successive classes: they stay apart however many there are."""
FIRST_HUE = 30
LIGHTNESS, CHROMA = {"light": 0.6, "dark": 0.74}, {"light": 0.16, "dark": 0.14}
KNOWN = {"light": "#a9aeb4", "dark": "#7a828a"}
"""All known classes are grey."""


def hue(number: int) -> int:
    """The hue of a novel class, in degrees; novel classes are numbered from 0."""
    return round((FIRST_HUE + GOLDEN_ANGLE * number) % 360)


def class_color(index: int, n_known: int) -> dict[str, str]:
    """CSS colors of a class on a light and on a dark screen; the first `n_known` classes are known."""
    if index < n_known:
        return KNOWN
    return {theme: f"oklch({LIGHTNESS[theme]} {CHROMA[theme]} {hue(index - n_known)})" for theme in LIGHTNESS}


def css_variables() -> str:
    """--dot-l and --dot-c, from which a page with hues makes the same colors, and --muted of known classes."""

    def variables(theme: str) -> str:
        return f":root{{--dot-l:{LIGHTNESS[theme]};--dot-c:{CHROMA[theme]};--muted:{KNOWN[theme]}}}"

    return f"{variables('light')}@media screen and (prefers-color-scheme:dark){{{variables('dark')}}}"
