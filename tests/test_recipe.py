"""Recipes: the paper's values, what a file may say, and what people are told when it is wrong."""

import string
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unveil import recipe
from unveil.errors import UnveilError
from unveil.methods.catalog import METHODS, names, settings_class
from unveil.methods.ncl import HNGSettings, NCLSettings
from unveil.settings import Data, Discovery, Settings

EVERYWHERE = {
    "discovery.trunk_batchnorm": "training",
    "method.scl_weight": 0.1,
    "method.scl_start": 0,
    "method.view_among_neighbors": True,
    "method.consistency_rows": "all",
    "method.separate_views": True,
    "method.queue_start": "random",
    "method.partners": "distinct",
}
REFERENCE_CODE: dict[str, dict[str, Any]] = {
    "cifar10": EVERYWHERE | {"discovery.milestones": [169], "method.k_easy": 50},
    "cifar100": EVERYWHERE | {"discovery.milestones": [169]},
    "imagenet": EVERYWHERE
    | {"discovery.milestones": [29, 59, 89], "method.queue": 3000, "method.queue_labeled": 30000},
}
"""The values of the published code where they differ from the text."""


def error(*overrides: str, source: str = "digits") -> str:
    """The message that some overrides give."""
    with pytest.raises(UnveilError) as caught:
        recipe.load(source, recipe.parse_set(overrides))
    message = str(caught.value)
    assert "\n" not in message
    return message


def flat(table: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Nested tables by dotted key."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{where}{key}.") if isinstance(value, dict) else {f"{where}{key}": value}
    return found


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_promised_recipes_are_there() -> None:
    promised = {"cifar10", "cifar100", "imagenet", "digits", "cifar10-desk", "imagenet20"}
    assert promised | {f"{name}-reference-code" for name in REFERENCE_CODE} <= set(recipe.names())


@pytest.mark.parametrize("name", recipe.names())
def test_every_shipped_recipe_loads_and_survives_a_round_trip(name: str) -> None:
    settings = recipe.load(name)
    assert settings.name == name
    assert recipe.parse(recipe.dump(settings), "dump") == settings


PAPER = ("cifar10", "cifar100", "imagenet")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "paper-to-code.md"


def papers_values() -> dict[str, list[Any]]:
    """What docs/paper-to-code.md says: the value of each setting in the three recipes; None where it is unset."""
    page = PAGE.read_text(encoding="utf-8").partition("<!-- recipes -->")[2]
    table, _, rest = page.partition("<!-- end of recipes -->")
    header, _, *lines = (line.strip("|").replace("\\|", "¦").split("|") for line in table.strip().splitlines())
    assert [cell.strip() for cell in header[1:4]] == list(PAPER)
    same = tomllib.loads(rest.partition("```toml")[2].partition("```")[0])
    values = {key: [value] * len(PAPER) for key, value in flat(same).items()}
    for line in lines:
        cells = [cell.strip() for cell in line]
        key = cells[0].strip("`")
        assert key not in values
        values[key] = [None if cell == "—" else tomllib.loads(f"value = {cell}")["value"] for cell in cells[1:4]]
    return values


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_recipes_have_the_values_of_the_table(name: str) -> None:
    expected = {key: values[PAPER.index(name)] for key, values in papers_values().items()}
    loaded = recipe.load(name)
    assert isinstance(loaded.method, HNGSettings)
    novel = {"cifar10": 5, "cifar100": 20, "imagenet": 30}[name]
    found = flat(recipe.to_table(loaded)) | {"k1": loaded.method.neighbors(loaded.method.queue, novel)}
    assert {key: found.get(key) for key in expected} == expected
    parts = ("augment.", "encoder.", "rotation.", "supervised.", "discovery.", "method.")
    missing = {key for key in found if key.startswith(parts)} - set(expected)
    assert not missing, "docs/paper-to-code.md lacks them"


def test_a_smaller_recipe_does_not_inherit_the_papers_precision() -> None:
    assert recipe.load("imagenet20").machine.precision == recipe.load("cifar10-desk").machine.precision == "auto"


@pytest.mark.parametrize("name", REFERENCE_CODE)
def test_a_reference_code_preset_differs_in_what_it_lists_alone(name: str) -> None:
    paper, code = (
        flat(recipe.to_table(recipe.load(source, {"name": "x"}))) for source in (name, f"{name}-reference-code")
    )
    different = {key: code.get(key) for key in paper.keys() | code.keys() if paper.get(key) != code.get(key)}
    assert different == REFERENCE_CODE[name]


@pytest.mark.parametrize(
    ("override", "table", "key", "value"),
    [
        ("method.alpha=0.3", "method", "alpha", 0.3),
        ("method.alpha=1", "method", "alpha", 1.0),
        ("discovery.lr = 1e-3 ", "discovery", "lr", 0.001),
        ("method.queue=512", "method", "queue", 512),
        ("augment.flip=true", "augment", "flip", True),
        ("discovery.method=baseline", "discovery", "method", "baseline"),
        ('discovery.method="baseline"', "discovery", "method", "baseline"),
        ("data.name=some/folder of mine", "data", "name", "some/folder of mine"),
        ("method.pairs=calibrated", "method", "pairs", "calibrated"),
        ("discovery.milestones=[1, 2]", "discovery", "milestones", (1, 2)),
        ("method.mixes=[0.5]", "method", "mixes", (0.5,)),
        ("augment.crop=[0.5, 1]", "augment", "crop", (0.5, 1.0)),
        ('data.known=["1", "7"]', "data", "known", ("1", "7")),
        ("data.known=3", "data", "known", 3),
        ("data.known=not names.txt", "data", "known", "not names.txt"),
        ("machine.device=cuda:1", "machine", "device", "cuda:1"),
    ],
)
def test_overrides_take_the_type_of_their_key(override: str, table: str, key: str, value: object) -> None:
    found = getattr(getattr(recipe.load("digits", recipe.parse_set([override])), table), key)
    assert found == value
    assert type(found) is type(value)


def test_none_unsets_what_may_be_unset_and_nothing_else() -> None:
    assert recipe.load("imagenet", recipe.parse_set(["data.novel=none"])).data.novel is None
    assert (
        recipe.load("imagenet", recipe.parse_set(["discovery.labeled_per_batch=None"])).discovery.labeled_per_batch
        is None
    )
    assert recipe.load("imagenet", {"data.novel": None}).data.novel is None
    quoted = recipe.parse_set(['data.vector_scaling="none"'])
    assert quoted == {"data.vector_scaling": "none"}
    assert recipe.load("vectors", quoted).data.vector_scaling == "none"
    assert "'method.alpha' is None, expected a number" in error("method.alpha=none")
    assert "did you mean 'alpha'?" in error("method.alpa=none")


def test_the_last_override_wins_and_an_override_makes_a_missing_table() -> None:
    assert recipe.load("digits", recipe.parse_set(["seed=1", "seed=2"])).seed == 2
    assert recipe.load("digits", {"supervised.epochs": 3}).supervised.epochs == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("method.alhpa=0.3", "unknown key 'method.alhpa'; did you mean 'alpha'?"),
        ("discvery.lr=0.3", "unknown key 'discvery'; did you mean 'discovery'?"),
        ("alpha=0.3", "unknown key 'alpha'; did you mean 'method.alpha'?"),
        ("discovery.width=3", "unknown key 'discovery.width'; did you mean 'encoder.width'?"),
        ("discovery.zzzzzz=1", "unknown key 'discovery.zzzzzz'; there are: epochs, passes"),
        ("method.alpha=much", "'method.alpha' is 'much', expected a number"),
        ("method.alpha=true", "'method.alpha' is True, expected a number"),
        ("discovery.epochs=1.5", "'discovery.epochs' is 1.5, expected a whole number"),
        ("augment.flip=1", "'augment.flip' is 1, expected true or false"),
        ("data.name=1", "'data.name' is 1, expected a string"),
        ("data.known=[0, 1]", "'data.known' is [0, 1], expected a whole number or a list of strings or a string"),
        ("discovery.milestones=3", "'discovery.milestones' is 3, expected a list of whole numbers"),
        ("augment.crop=[0.5]", "'augment.crop' is [0.5], expected a list of 2 numbers"),
        ("method.pairs=cosinus", "'method.pairs' is 'cosinus'; did you mean 'cosine'?"),
        ("rotation=3", "'rotation' is a table of settings, got 3"),
        ("name.first=x", "'name' is a value, not a table"),
        ("method.alpha", "write it as table.key=value"),
        ("=3", "write it as table.key=value"),
        ("method.alpha=2", "method.alpha is 2.0: give a number from 0 to 1"),
        ("rotation.epochs=-1", "rotation.epochs is -1: give 0 or more"),
        ("rotation.momentum=0", "rotation.nesterov needs momentum"),
        ("discovery.lr=nan", "discovery.lr is nan"),
        ("discovery.labeled_per_batch=64", "in batches of 64: give 1 to 63"),
        ("method.k1=-1", "method.k1 is -1"),
        ("method.mixes=[]", "method.mixes is []"),
        ("encoder.blocks=[1, 1]", "encoder.blocks is [1, 1]: give four"),
        ("augment.crop=[0.9, 0.1]", "augment.crop is [0.9, 0.1]"),
        ("data.std=[0.0]", "data.std is [0.0]"),
        ("machine.workers=-1", "machine.workers is -1"),
        ("seed=-1", "seed is -1: give a whole number from 0"),
    ],
)
def test_a_bad_override_is_told_in_one_line(override: str, said: str) -> None:
    assert said in error(override)


def test_an_unknown_recipe_is_told_with_the_nearest_one() -> None:
    assert "no recipe called 'cifar-10'; did you mean 'cifar10'?" in error(source="cifar-10")
    assert "there are: cifar10" in error(source="qqq")
    assert "no recipe file at gone.toml" in error(source="gone.toml")


def test_a_file_may_extend_a_shipped_recipe_or_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    written(tmp_path, 'extends = "digits"\n[method]\nalpha = 0.4\nqueue = 9\n', "base.toml")
    mine = written(tmp_path, 'extends = "../base.toml"\n[method]\nalpha = 0.5\n', "inner/mine.toml")
    settings = recipe.load(mine)
    assert settings.name == "mine"
    assert isinstance(settings.method, NCLSettings)
    assert (settings.method.alpha, settings.method.queue) == (0.5, 9)
    assert settings.encoder == recipe.load("digits").encoder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[data\n", "mine.toml is not valid TOML"),
        ("[data]\nname = 'digits'\nname = 'x'\n", "mine.toml is not valid TOML"),
        ("extends = 'mine.toml'\n", "extends itself"),
        ("extends = 'digitz'\n", "did you mean 'digits'?"),
        ("extends = 'gone.toml'\n", "gone.toml"),
        ("[method]\nalpha = 0.1\n", "the recipe has no 'data'"),
        ("[data]\nknown = 3\n", "the recipe has no 'data.name'"),
        ("data = 3\n", "'data' is a table of settings, got 3"),
    ],
)
def test_a_bad_file_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in error(source=written(tmp_path, text))


def test_a_file_that_is_no_text_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe\x00name")
    assert "mine.toml cannot be read" in error(source=str(tmp_path / "mine.toml"))


floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))  # every character that UTF-8 can hold


@example(name='\x7f\x00"\\\r\n[é]', data="", known=["\x7f"], mean=[1e16, 5e-324, -0.0], weight=1e-7, seed=0)
@given(name=texts, data=texts, known=st.lists(texts), mean=st.lists(floats), weight=floats, seed=st.integers(0, 99))
def test_any_value_survives_the_way_through_toml(
    name: str, data: str, known: list[str], mean: list[float], weight: float, seed: int
) -> None:
    settings = Settings(
        name=name,
        data=Data(name=data, known=tuple(known), mean=tuple(mean)),
        method=HNGSettings(bce_weight=weight, consistency=-weight),
        seed=seed,
    )
    assert recipe.parse(recipe.dump(settings), "dump") == settings


@given(st.text(string.ascii_letters + "._-", min_size=1))
def test_any_key_is_known_or_refused(key: str) -> None:
    table = recipe.to_table(recipe.load("digits"))
    if key not in table:
        with pytest.raises(UnveilError, match="unknown key"):
            recipe.from_table({**table, key: 1})


def test_changed_leaves_defaults_out() -> None:
    assert recipe.changed(Discovery()) == {}
    assert recipe.changed(Discovery(lr=0.3, milestones=(1,))) == {"lr": 0.3, "milestones": [1]}
    kcl = recipe.load("digits", {"discovery.method": "kcl"}).method
    assert recipe.changed(kcl) == {}
    kcl = recipe.load("digits", {"discovery.method": "kcl", "method.similarity.lr": 0.3}).method
    assert recipe.changed(kcl) == {"similarity": {"lr": 0.3}}


def test_the_method_table_of_an_extended_recipe_may_be_of_another_method(tmp_path: Path) -> None:
    dtc = recipe.load("cifar10", {"discovery.method": "dtc"}).method
    assert dtc == METHODS["dtc"].Settings(consistency=5.0, rampup=50)  # type: ignore[call-arg]
    assert recipe.load("cifar100", {"discovery.method": "dtc"}).method.consistency == 50  # type: ignore[attr-defined]
    mine = written(tmp_path, 'extends = "digits"\n[discovery]\nmethod = "dtc"\n[method]\ninterval = 3\n')
    assert recipe.load(mine).method.interval == 3  # type: ignore[attr-defined]
    back = recipe.load(mine, {"discovery.method": "ncl"})
    assert back == replace(recipe.load("digits", {"discovery.method": "ncl"}), name="mine")


def test_settings_of_one_name_in_two_methods_are_not_mixed_up(tmp_path: Path) -> None:
    mine = written(tmp_path, 'extends = "digits"\n[method]\nvariant = "v3"\n')
    assert recipe.load(mine).method.variant == "v3"  # type: ignore[attr-defined]
    assert recipe.load(mine, {"discovery.method": "dtc"}).method.variant == "pi"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        ("", ["discovery.method=dtc", "method.alpha=0.3"], "'alpha' is a setting of ncl, ncl-hng; the method is dtc"),
        (
            "[discovery]\nmethod='dtc'\n[method]\nalpha=0.3",
            [],
            "'alpha' is a setting of ncl, ncl-hng; the method is dtc",
        ),
        ("[method]\ninterval=3", [], "'interval' is a setting of dtc; the method is ncl-hng"),
        ("[method]\nalhpa=3", ["discovery.method=dtc"], "unknown key 'method.alhpa'; did you mean 'alpha'?"),
        ("", ["discovery.method=dtc", "method.alhpa=3"], "unknown key 'method.alhpa'; did you mean 'alpha'?"),
        ("", ["discovery.method=kmeans", "method.zzz=3"], "unknown key 'method.zzz'; kmeans has no settings"),
        (
            "",
            ["discovery.method=kcl", "method.similarity.ephocs=3"],
            ".ephocs'; did you mean 'epochs'?",
        ),
        ("", ["discovery.method=kcl", "method.similarity.epochs=0"], "method.similarity.epochs is 0"),
        ("", ["discovery.alpha=0.3"], "unknown key 'discovery.alpha'; did you mean 'method.alpha'?"),
        ("", ["discovery.alhpa=0.3"], "unknown key 'discovery.alhpa'; did you mean 'method.alpha'?"),
        ("", ["similarity.epochs=3"], "unknown key 'similarity'; did you mean 'method.similarity'?"),
        ("", ["discovery.method=nlc"], "discovery.method is 'nlc'; did you mean 'ncl'?"),
        ("", ["method=ncl"], "'method' is a table of settings, got 'ncl'"),
    ],
)
def test_a_setting_of_another_method_is_an_error_with_its_owner(
    tmp_path: Path, text: str, overrides: list[str], said: str
) -> None:
    assert said in error(*overrides, source=written(tmp_path, f'extends = "digits"\n{text}\n'))


def test_defaults_are_as_lenient_as_a_recipe() -> None:
    chosen = ["method.interval=2", "method.alpha=0.4", "discovery.lr=0.3"]
    dtc = recipe.load("digits", {"discovery.method": "dtc"}, defaults=recipe.parse_set(chosen))
    assert (dtc.method.interval, dtc.discovery.lr) == (2, 0.3)  # type: ignore[attr-defined]
    ncl = recipe.load("digits", {"discovery.method": "ncl", "method.alpha": 0.1}, defaults=recipe.parse_set(chosen))
    assert ncl.method.alpha == 0.1  # type: ignore[attr-defined]
    with pytest.raises(UnveilError, match="did you mean 'alpha'"):
        recipe.load("digits", defaults={"method.alhpa": 0.4})


@pytest.mark.parametrize("name", names())
def test_settings_of_every_method_survive_a_round_trip(name: str) -> None:
    settings = recipe.load("digits", {"discovery.method": name})
    assert type(settings.method) is settings_class(name)
    assert recipe.parse(recipe.dump(settings), "dump") == settings


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "9" * 400])
@pytest.mark.parametrize("key", ["method.k1_fraction", "method.rank_fraction", "discovery.decay", "data.imbalance"])
def test_only_finite_numbers_are_taken(key: str, value: str) -> None:
    with pytest.raises(UnveilError, match=key.partition(".")[2]):
        recipe.load("digits", recipe.parse_set([f"{key}={value}"]))


@pytest.mark.parametrize("seed", [-1, 2**32, 10**30])
def test_a_seed_that_no_generator_takes_is_refused(seed: int) -> None:
    with pytest.raises(UnveilError, match="seed"):
        recipe.load("digits", {"seed": seed})


@pytest.mark.parametrize("text", ["a = " + "[" * 9000 + "]" * 9000, "a." * 3000 + "a = 1", "[" + "a." * 3000 + "a]"])
def test_deeply_nested_toml_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text + "\n")
    with pytest.raises(UnveilError):
        recipe.load(str(tmp_path / "deep.toml"), {})
    with pytest.raises(UnveilError):
        recipe.load("digits", recipe.parse_set([f"data.per_class={'[' * 9000}"]))
    with pytest.raises(UnveilError):
        recipe.load("digits", recipe.parse_set(["a." * 3000 + "a=1"]))
