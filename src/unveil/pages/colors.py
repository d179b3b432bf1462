"""The colors of classes, the same in the report and on the review page, for light and dark screens."""

import math

GOLDEN_ANGLE = 137.508  # degrees between the hues of successive classes: they stay apart however many there are
FIRST_HUE = 30
LIGHTNESS, CHROMA = {"light": 0.6, "dark": 0.74}, {"light": 0.16, "dark": 0.14}
KNOWN = {"light": "#a9aeb4", "dark": "#7a828a"}
"""All known classes are gray."""


def hue(number: int) -> int:
    """The hue of a novel class, in degrees; novel classes are numbered from 0."""
    return round((FIRST_HUE + GOLDEN_ANGLE * number) % 360)


def class_color(index: int, n_known: int) -> dict[str, str]:
    """CSS colors of a class on a light and on a dark screen; the first `n_known` classes are known."""
    if index < n_known:
        return KNOWN
    return {theme: f"oklch({LIGHTNESS[theme]} {CHROMA[theme]} {hue(index - n_known)})" for theme in LIGHTNESS}


def rgb(lightness: float, chroma: float, degrees: float) -> tuple[float, float, float]:
    """An OKLCH color as sRGB, each channel from 0 to 1: for programs that do not know OKLCH."""
    a, b = chroma * math.cos(math.radians(degrees)), chroma * math.sin(math.radians(degrees))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    red, green, blue = (_channel(value) for value in linear)
    return red, green, blue


def _channel(value: float) -> float:
    bright = 12.92 * value if value <= 0.0031308 else 1.055 * max(value, 0) ** (1 / 2.4) - 0.055
    return min(1.0, max(0.0, bright))


def css_variables() -> str:
    """--dot-l and --dot-c, from which a page with hues makes the same colors, and --muted of known classes."""

    def variables(theme: str) -> str:
        return f":root{{--dot-l:{LIGHTNESS[theme]};--dot-c:{CHROMA[theme]};--muted:{KNOWN[theme]}}}"

    return f"{variables('light')}@media screen and (prefers-color-scheme:dark){{{variables('dark')}}}"
