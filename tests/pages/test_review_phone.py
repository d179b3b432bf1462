"""The review page on a phone: 390 pixels wide, touched by fingers. And what is the same with a mouse."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import CHROMIUM, DRIVER, Browser, phone, served
from review_runs import seal_again, write_run
from selenium.webdriver import Keys
from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")


@pytest.fixture
def hand(browser: Browser) -> Iterator[Browser]:
    """A browser on a phone."""
    with phone(browser):
        yield browser


def kinds(run: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (run / "review.jsonl").read_text().splitlines()]


def test_pictures_are_seen_large_and_judged_by_touch(hand: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="files")
    with served(run) as address:
        hand.open(address)
        hand.tap(hand.card("novel-0").find_element("css selector", "canvas"))
        hand.tap(hand.tile(1))
        hand.tap(hand.button("#selection", "Look"))
        hand.until(lambda: "1 of 12" in hand.one(".viewer header").text)
        assert hand.fits()
        box = hand.one(".viewer .stage").rect
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        hand.touch((x + 90, y), (x + 30, y), (x - 90, y))  # a swipe
        hand.until(lambda: "2 of 12" in hand.one(".viewer header").text)
        hand.tap(hand.one(".viewer [aria-label='Next item']"))
        hand.until(lambda: "3 of 12" in hand.one(".viewer header").text)
        hand.tap(hand.one(".viewer [aria-label='Zoom in']"))
        hand.until(lambda: "scale(1.5)" in (hand.one(".viewer img").get_attribute("style") or ""))
        hand.tap(hand.button(".viewer .tools", "Confirm"))
        hand.length(1)
        hand.until(lambda: "4 of 12" in hand.one(".viewer header").text)
        hand.tap(hand.button(".viewer .tools", "Reject"))
        hand.length(2)
        hand.until(lambda: "5 of 12" in hand.one(".viewer header").text)
        hand.tap(hand.button(".viewer .tools", "Move"))
        hand.until(lambda: len(hand.all("dialog.picker li")) == 7)  # a new class, and all that there are
        assert hand.fits()
        hand.tap(hand.all("dialog.picker li")[2])
        hand.length(3)
        hand.tap(hand.one(".viewer [aria-label='Close']"))
        hand.until(lambda: not hand.all(".viewer"))
        assert hand.complaints() == []
    assert kinds(run) == ["move", "reject", "move"]


def test_a_class_is_named_merged_split_and_reviewed_by_touch(hand: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address:
        hand.open(address)
        names = hand.names()
        hand.go(f"#/class/{int(names[0].removeprefix('novel-')) + 2}")
        suggested = hand.one(".profile .names button")
        text = suggested.text.removesuffix("t").strip()
        hand.tap(suggested)
        hand.length(1)
        hand.until(lambda: hand.one("h1.holder").text == text)

        hand.tap(hand.button(".head .tools", "Merge"))
        hand.until(lambda: len(hand.all("dialog.picker li")) == 3)
        assert hand.fits()
        hand.tap(hand.one("dialog.picker li"))
        hand.until(lambda: f"They become {text}, 24 items" in hand.one("dialog .result").text)
        assert hand.fits()
        hand.tap(hand.button("dialog", "Merge"))
        hand.length(2)

        hand.until(lambda: not hand.all("dialog"))
        hand.tap(hand.button(".head .tools", "Split"))
        hand.until(lambda: len(hand.all("dialog .parts section")) == 2)
        assert hand.fits()
        hand.tap(hand.button("dialog .ends", "Split into 2"))
        hand.length(3)
        hand.until(lambda: len(hand.names()) == 4)

        hand.tap(hand.card(text).find_element("css selector", "canvas"))
        hand.tap(hand.button(".head .tools", "Mark as reviewed"))
        hand.length(4)
        hand.until(lambda: hand.one("h1.holder").text not in ("", text))  # the next class
        assert hand.fits()
        assert hand.complaints() == []
    assert kinds(run) == ["name", "merge", "split", "accept"]


def test_a_finger_draws_around_items_on_the_map(hand: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address:
        hand.open(address)
        hand.go("#/map")
        hand.until(lambda: len(hand.all(".legend button")) == 4)
        hand.until(lambda: hand.one("canvas.map").get_attribute("data-names"))
        box = hand.one("canvas.map").rect
        left, top = box["x"] + 3, box["y"] + 3
        right, bottom = box["x"] + box["width"] - 3, box["y"] + box["height"] - 3
        hand.touch((left, top), (right, top), (right, bottom), (left, bottom), (left, top + 9))
        hand.until(lambda: "48 selected" in hand.one("#selection").text)
        hand.until(lambda: hand.all(".side .tile"))  # beside the map, or below it
        assert hand.fits()
        hand.tap(hand.button("#selection", "Save list"))
        hand.until(lambda: "48 items as selection.csv" in hand.one("#toasts").text)
        hand.tap(hand.button("#selection", "Reject"))
        hand.length(1)
        hand.until(lambda: not hand.one("#selection").is_displayed())
        assert hand.complaints() == []


@pytest.mark.parametrize("small", [False, True])
def test_of_duplicates_one_is_kept(browser: Browser, tmp_path: Path, small: bool) -> None:
    run = write_run(tmp_path / "run")
    features = np.load(run / "features.npy")
    features[[31, 32, 40]] = features[30]  # new ones
    features[50] = features[3]  # a new one and a labeled one
    np.save(run / "features.npy", features)
    pixels = np.load(run / "pictures.npy")
    pixels[[31, 32, 40]], pixels[50] = pixels[30], pixels[3]
    np.save(run / "pictures.npy", pixels)
    seal_again(run)
    with served(run) as address, phone(browser) if small else nullcontext():
        act: Any = browser.tap if small else WebElement.click
        browser.open(address)
        browser.go("#/duplicates")
        browser.until(lambda: "2 groups" in browser.one(".head").text)
        assert len(browser.all(".tile")) == 6
        assert browser.fits()
        slider = browser.one("[aria-label='Least similarity']")
        slider.send_keys(*[Keys.ARROW_LEFT] * 12)
        browser.until(lambda: "0.987" in browser.one(".head").text)
        slider.send_keys(*[Keys.ARROW_RIGHT] * 12)
        browser.until(lambda: "2 groups" in browser.one(".head").text)
        act(browser.button(".head", "Keep one of each"))
        browser.length(1)
        browser.until(lambda: "No two items look the same" in browser.one(".items").text)
        assert browser.complaints() == []
    (line,) = (run / "review.jsonl").read_text().splitlines()
    assert json.loads(line)["data"]["rows"] == [31, 32, 40, 50]  # the labeled one stays


@pytest.mark.parametrize("small", [False, True])
def test_a_table_is_read_by_its_columns(browser: Browser, tmp_path: Path, small: bool) -> None:
    run = write_run(tmp_path / "run", pictures="none")
    names = ["weight", "height", *(f"sensor {number}" for number in range(14))]
    seal_again(run, columns=names)
    with served(run) as address, phone(browser) if small else nullcontext():
        act: Any = browser.tap if small else WebElement.click
        browser.open(address)
        browser.go("#/class/3")
        browser.until(lambda: "Most unusual columns" in browser.one(".profile").text)
        assert any(name in browser.one(".profile .chips").text for name in names)
        browser.until(lambda: len(browser.all(".profile a")) == 2)  # the nearest known class and cluster, to be read
        over = """return [...document.querySelectorAll('.profile section p')].filter(line => [...line.children].some(
            one => one.getBoundingClientRect().right > line.getBoundingClientRect().right + 1))
            .map(line => line.textContent)"""
        assert browser.driver.execute_script(over) == []
        assert min(one.size["width"] for one in browser.all(".profile a")) > 8
        assert browser.fits()
        act(browser.button(".head .tools", "Split"))
        browser.until(lambda: len(browser.all("dialog .parts section")) == 2)
        told = [one.text for one in browser.all("dialog .parts .chips")]
        assert len(told) == 2
        assert all(any(name in text for name in names) for text in told)  # what tells the parts apart
        act(browser.button("dialog .ends", "Cancel"))
        browser.until(lambda: not browser.all("dialog"))
        act(browser.tile(1))
        act(browser.button("#selection", "Look"))
        browser.until(lambda: len(browser.all(".viewer dt")) == 16)  # the whole row
        assert {one.text for one in browser.all(".viewer dt")} == set(names)
        assert browser.fits()
        browser.keys(Keys.ESCAPE)
        assert browser.complaints() == []


def test_warnings_and_troubles_fit_a_phone(hand: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    seal_again(run, warnings=["the classes look unbalanced: small ones may be missing"])
    with served(run) as address:
        hand.open(address)
        hand.until(lambda: "small ones may be missing" in hand.one(".warnings").text)
        assert hand.fits()
        run.rename(tmp_path / "elsewhere")
        hand.go("#/class/3")
        hand.go("#/map")
        hand.until(lambda: "Run missing" in hand.one("#trouble").text)
        assert hand.fits()
        (tmp_path / "elsewhere").rename(run)
        hand.tap(hand.one("#trouble button"))
        hand.until(lambda: not hand.one("#trouble").is_displayed())
    hand.complaints()
