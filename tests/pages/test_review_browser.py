"""The review page in a real browser, as people use it."""

import csv
import json
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import AXE, CHROMIUM, DRIVER, Browser, command, focused, phone, served
from review_runs import seal_again, write_run
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from unveil.pages.review.serve import prepare
from unveil.runs.reader import load

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
HOSTILE = "<img src=x onerror=document.title='owned'>"


def exported(run: Path) -> Counter[str]:
    with (run / "export-csv.csv").open() as file:
        return Counter(row["label"] for row in csv.DictReader(file))


def test_open_name_merge_split_move_undo_reload_export(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with command(run) as address:
        browser.open(address)
        assert browser.driver.current_url.endswith("/")  # no code is left in the address
        assert browser.driver.get_cookies() == []  # cookies would go to other ports too
        assert sorted(browser.names()) == ["novel-0", "novel-1", "novel-2", "novel-3"]
        browser.card("novel-0").find_element(By.CSS_SELECTOR, "button.name").click()
        browser.one("input.name").send_keys(Keys.CONTROL + "a", Keys.NULL, "fox", Keys.ENTER)
        browser.length(1)
        browser.card("fox")

        chain = ActionChains(browser.driver).key_down(Keys.CONTROL)
        chain.click(browser.card("novel-2")).click(browser.card("novel-3")).key_up(Keys.CONTROL).perform()
        browser.keys("m")
        assert "They become novel-2, 24 items" in browser.one("dialog").text  # it is shown before it is done
        browser.keys(Keys.ENTER)
        browser.length(2)
        browser.until(lambda: len(browser.names()) == 3)

        browser.card("novel-1").click()
        browser.one(".tile")
        browser.keys("s")
        apply = browser.until(lambda: next((b for b in browser.all("dialog .primary") if b.is_enabled()), None))
        assert len(browser.all("dialog .parts section")) == 2
        browser.all("dialog .parts input")[1].send_keys("owl")
        apply.click()
        browser.length(4)
        browser.card("owl")  # the parts stand beside each other
        browser.until(lambda: browser.names().index("owl") == browser.names().index("novel-1") + 1)
        browser.card("novel-1").click()
        browser.until(lambda: len(browser.all(".tile")) == 6)
        browser.tile(1).click()
        ActionChains(browser.driver).key_down(Keys.SHIFT).click(browser.tile(3)).key_up(Keys.SHIFT).perform()
        assert "3 selected" in browser.one("#selection").text
        browser.keys("v")
        browser.one("dialog input").send_keys("fox", Keys.ENTER)
        browser.length(5)
        browser.until(lambda: len(browser.all(".tile")) == 3)

        browser.keys("x")
        browser.length(6)
        browser.keys("u")
        browser.length(7)
        browser.until(lambda: len(browser.all(".tile")) == 3)

        browser.driver.refresh()
        browser.one("body[data-ready]")
        browser.until(lambda: len(browser.all(".tile")) == 3)
        browser.keys(Keys.ESCAPE)
        browser.card("fox")
        browser.one("#export").click()
        browser.one("dialog .primary").click()
        browser.until(lambda: browser.one("dialog .result").get_attribute("data-written"))
        browser.keys(Keys.ESCAPE)
        assert browser.complaints() == []
    found = exported(run)
    assert sorted(found.values()) == [3, 6, 15, 24]
    assert found["fox"] == 15


def test_hostile_names_are_only_shown(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "<script>document.title='owned'<", pictures="files", known=("cat", HOSTILE))
    with served(run) as address:
        browser.open(address)
        browser.card("novel-0").find_element(By.CSS_SELECTOR, "button.name").click()
        browser.one("input.name").send_keys(Keys.CONTROL + "a", Keys.NULL, HOSTILE + "2", Keys.ENTER)
        card = browser.card(HOSTILE + "2")
        browser.card(HOSTILE)
        assert browser.one("#run").text == "<script>document.title='owned'<"
        card.click()
        browser.until(lambda: "<script>alert(1)</script>/" in browser.one(".preview .id").text)
        browser.until(lambda: "<script>" in (browser.one(".tile").get_attribute("aria-label") or ""))
        browser.keys("v")
        browser.until(lambda: HOSTILE in browser.one("dialog ul").text)
        browser.keys(Keys.ESCAPE)
        browser.go("#/map")
        browser.until(lambda: HOSTILE in browser.one(".legend").text)
        assert "owned" not in browser.driver.title or browser.driver.title.startswith("<script>")
        assert browser.all("main img[src=x], dialog img[src=x], main script, header script") == []
        assert browser.complaints() == []


def test_thousands_of_items_keep_few_in_the_page(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", each=3000, clusters=1)
    with served(run) as address:
        browser.open(address)
        browser.card("novel-0").click()
        browser.one(".tile")
        browser.keys(Keys.END)
        assert browser.tile(3000).get_attribute("aria-setsize") == "3000"
        assert len(browser.all(".tile")) < 200
        drawn = "return document.querySelector('.tile[aria-posinset=\"3000\"]')?.drawn === true"
        browser.until(lambda: browser.driver.execute_script(drawn))  # tiles are made anew where the page has changed
        ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        browser.until(lambda: "3,000 selected" in browser.one("#selection").text)
        browser.keys("x")
        browser.length(1)
        browser.until(lambda: "No novel classes" in browser.one("h1").text)
        browser.until(lambda: browser.one(".gallery .empty").text == "Every new item was rejected.")
        browser.until(lambda: "3,000 rejected items" in browser.one(".rejected").text)


def test_lasso_on_the_map(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address:
        browser.open(address)
        browser.go("#/map")
        browser.until(lambda: len(browser.all(".legend button")) == 4)
        canvas = browser.one("canvas.map")
        width, height = canvas.size["width"], canvas.size["height"]
        chain = ActionChains(browser.driver, duration=20)
        corners = [(-0.49, -0.49), (0.49, -0.49), (0.49, 0.49), (-0.49, 0.49)]
        chain.move_to_element_with_offset(canvas, int(-0.49 * width), int(-0.49 * height)).click_and_hold()
        for x, y in corners[1:]:
            chain.move_to_element_with_offset(canvas, int(x * width), int(y * height))
        chain.release().perform()
        browser.until(lambda: "48 selected" in browser.one("#selection").text)  # the 24 known items stay out
        browser.keys("v")
        browser.one("dialog input").send_keys("all of them", Keys.ENTER)
        browser.length(1)
        browser.until(lambda: "all of them" in browser.one(".legend").text)
        browser.keys("u")
        browser.length(2)
        browser.until(lambda: len(browser.all(".legend button")) == 4)
        browser.until(lambda: not browser.one(".note").is_displayed())  # the finer map has come
    assert (run / "map.npz").exists()


def test_a_second_window_is_told_and_the_keyboard_is_enough(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="none")
    with served(run) as address:
        browser.open(address)
        first = browser.names()[0]
        assert browser.driver.switch_to.active_element.get_attribute("class") == "card"
        number = int(first.removeprefix("novel-")) + 2
        line = json.dumps({"number": 1, "time": "", "kind": "name", "data": {"cluster": number, "text": "elsewhere"}})
        (run / "review.jsonl").write_text(line + "\n")
        browser.keys("a")
        browser.until(lambda: "another window" in browser.one(".toast.bad").text)
        browser.card("elsewhere")
        browser.keys("a")
        browser.length(2)
        browser.keys("k")
        browser.one("dialog input").send_keys("cat", Keys.ENTER)
        browser.length(3)
        browser.until(lambda: browser.names().count("cat") == 1)
        browser.keys(Keys.ARROW_RIGHT, " ", Keys.ARROW_RIGHT, " ", "m")
        browser.one("dialog .primary")
        browser.keys(Keys.ENTER)
        browser.length(4)
        browser.until(lambda: len(browser.names()) == 3)
        browser.keys("/")
        browser.keys("novel")
        browser.until(lambda: len(browser.names()) == 2)
        browser.keys(Keys.ENTER, Keys.ENTER)
        assert "column" in browser.until(lambda: browser.one(".tile .words").text)
        browser.keys("f")
        browser.until(lambda: "Similar items" in browser.one("h1").text)
        browser.keys("?")
        browser.until(lambda: "these keys" in browser.one("dialog").text)


def test_what_goes_wrong_stays_on_the_page_and_nothing_typed_is_lost(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    server, bound, links = prepare(load(run), host="127.0.0.1", port=0)
    access, port = links.access, bound.getsockname()[1]
    assert access is not None
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    browser.open(links.address)
    browser.card("novel-0")
    server.should_exit = True
    thread.join()

    browser.card("novel-0").find_element(By.CSS_SELECTOR, "button.name").click()
    browser.one("input.name").send_keys(Keys.CONTROL + "a", Keys.NULL, "fox", Keys.ENTER)
    browser.until(lambda: "Server gone" in browser.one("#trouble").text)
    assert "1 action not saved yet: Named fox" in browser.one("#trouble").text

    server, bound, links = prepare(load(run), host="127.0.0.1", port=port)  # somebody starts it again
    assert links.access is not None
    links.access._keys |= access._keys
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        browser.until(lambda: not browser.one("#trouble").is_displayed())
        browser.card("fox")

        (run / "review.jsonl").rename(run / "away")
        browser.card("fox").find_element(By.CSS_SELECTOR, "button.name").click()
        browser.one("input.name").send_keys(Keys.CONTROL + "a", Keys.NULL, "owl", Keys.ENTER)
        browser.until(lambda: "Log missing" in browser.one("#trouble").text)
        assert "fox" in browser.names()  # not shown as undone
        browser.one("#trouble button").click()
        browser.until(lambda: not browser.one("#trouble").is_displayed())
        browser.card("owl")  # what could not be saved is saved now
        assert (run / "review.jsonl").read_bytes().startswith((run / "away").read_bytes())

        run.rename(tmp_path / "elsewhere")
        browser.go("#/map")
        browser.until(lambda: "Run missing" in browser.one("#trouble").text)
        (tmp_path / "elsewhere").rename(run)
        browser.until(lambda: not browser.one("#trouble").is_displayed())

        browser.go("#/")
        browser.driver.execute_script("localStorage.removeItem('unveil-key')")
        browser.keys("a")
        browser.until(lambda: "Not signed in" in browser.one("#trouble").text)
    finally:
        server.should_exit = True
        thread.join()
    browser.complaints()


def test_a_failed_request_for_pictures_is_sent_again(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address:
        browser.open(address)
        fail = """const real = window.fetch; let left = 2;
            window.fetch = (path, ...more) => String(path).includes('thumbs') && left-- > 0
              ? Promise.resolve(new Response('{"error": "once"}', {status: 500})) : real(path, ...more);"""
        browser.driver.execute_script(fail)
        browser.card("novel-3").click()
        drawn = "return [...document.querySelectorAll('.tile')].filter(tile => tile.drawn).length"
        browser.until(lambda: browser.driver.execute_script(drawn) == 12)


def test_the_focus_is_always_somewhere_and_goes_to_the_next_class(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", each=300)
    with served(run) as address:
        browser.open(address)
        names = browser.names()
        browser.one("select[aria-label=Status] option[value=open]").click()
        browser.driver.execute_script("document.querySelector('.card').focus()")
        for number, name in enumerate(names[:2]):
            at = browser.driver.execute_script("return document.activeElement.querySelector('.name')?.textContent")
            assert at == name
            browser.keys("a")
            browser.length(number + 1)
            browser.until(lambda name=name: name not in browser.names())  # type: ignore[misc]
            assert focused(browser) == "card"
        browser.one(".toast button").click()  # undo: the button that had the focus is gone
        browser.length(3)
        browser.until(lambda: focused(browser) == "card")
        browser.driver.execute_script(  # nobody sees which card this would be; at once, for the focus comes back
            "document.activeElement.blur();"
            "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true}))"
        )
        assert focused(browser) == "card"
        browser.length(3)

        browser.one("select[aria-label=Status] option[value=all]").click()
        browser.card(names[1]).click()
        browser.one(".tile")
        browser.keys("a")
        browser.length(4)
        browser.until(lambda: browser.one("h1.holder").text == names[2])  # the next one that is to review
        assert "grid" in focused(browser)

        browser.one(".tile")
        browser.driver.execute_script("document.querySelector('.grid').scrollTop = 900")
        browser.keys(*[Keys.PAGE_DOWN] * 2, " ", Keys.ARROW_RIGHT, " ")
        place = browser.driver.execute_script("return document.querySelector('.grid').scrollTop")
        assert place > 0
        browser.keys("f")
        browser.until(lambda: "Similar items" in browser.one("h1").text)
        browser.one(".tile")
        browser.keys(Keys.ESCAPE)
        browser.until(lambda: browser.one("h1.holder").text == names[2])
        browser.until(lambda: "2 selected" in browser.one("#selection").text)
        assert browser.driver.execute_script("return document.querySelector('.grid').scrollTop") == place
        assert browser.complaints() == []


def test_pickers_are_complete_and_sorted_by_similarity(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", each=3, clusters=90)
    read = load(run)
    unit = read.features / np.linalg.norm(read.features, axis=1, keepdims=True)
    means = np.stack([unit[read.labels == c].mean(axis=0) for c in range(92)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines = means @ means[7]
    nearest = [read.classes[c] for c in np.argsort(-cosines) if c not in (0, 1, 7)]
    with served(run) as address:
        browser.open(address)
        browser.go("#/class/7")
        browser.one(".tile")
        browser.keys("m")
        browser.one("dialog li")
        script = "return [...document.querySelectorAll('dialog li .label')].map(one => one.textContent)"
        listed = browser.driver.execute_script(script)
        assert listed[:30] == nearest[:30]
        assert sorted(listed) == sorted(nearest)
        drawn = "return [...document.querySelectorAll('dialog canvas')].filter(one => one.width !== 300).length"
        browser.until(lambda: 5 < browser.driver.execute_script(drawn) < 60)  # only those that can be seen
        browser.keys(Keys.ENTER)
        assert nearest[0] in browser.one("dialog .parts").text
        browser.one("dialog .primary").click()
        browser.length(1)
        browser.until(lambda: "6 items" in browser.one(".titles").text)
        sections = [one.text.split("\n")[0].split()[0] for one in browser.all(".profile section")]
        assert [name for name in sections if name != "Suggested"] == ["Most", "Nearest", "Nearest"]


def test_a_second_key_decides_nothing_until_the_next_item_is_shown(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="files")
    with served(run) as address:
        browser.open(address)
        browser.card("novel-0").click()
        browser.one(".tile")
        browser.keys(Keys.ENTER)
        browser.until(lambda: "1 of 12" in browser.one(".viewer header").text)
        browser.driver.execute_script("""
            const { fetch } = window;
            const answered = new Promise((resolve) => (window.answer = resolve));
            window.fetch = async (address, options) => {
              const answer = await fetch(address, options);
              if (options?.method === "POST") await answered;
              return answer;
            };
        """)
        browser.keys("x")
        browser.length(1)
        browser.keys("x", "y")  # the server has written it, its answer is on the way
        browser.driver.execute_script("answer()")
        browser.until(lambda: "2 of 12" in browser.one(".viewer header").text)
        browser.keys("x")
        browser.until(lambda: "3 of 12" in browser.one(".viewer header").text)
        browser.length(2)


def test_a_picture_over_the_whole_window(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="files")
    with served(run) as address:
        browser.open(address)
        browser.card("novel-0").click()
        tile = browser.one(".tile")
        browser.keys(Keys.ARROW_RIGHT, Keys.ENTER)
        browser.until(lambda: "2 of 12" in browser.one(".viewer header").text)
        browser.until(
            lambda: browser.driver.execute_script("return document.querySelector('.viewer img').naturalWidth") == 16
        )
        box = browser.one(".viewer").rect
        assert (box["width"], box["height"]) == tuple(browser.driver.execute_script("return [innerWidth, innerHeight]"))
        first = browser.one(".viewer .id").text
        browser.keys("+", "+")
        assert "scale(2.25)" in (browser.one(".viewer img").get_attribute("style") or "")
        browser.keys("y")
        browser.length(1)
        browser.until(lambda: "3 of 12" in browser.one(".viewer header").text)
        assert "scale(1)" in (browser.one(".viewer img").get_attribute("style") or "")
        browser.keys(Keys.ARROW_LEFT)
        browser.until(lambda: browser.one(".viewer .id").text == first)
        browser.until(lambda: "placed by a person" in browser.one(".viewer header").text)
        browser.keys("x")
        browser.until(lambda: "3 of 12" in browser.one(".viewer header").text)
        browser.keys("v")
        browser.one("dialog.picker input").send_keys("novel-1", Keys.ENTER)
        browser.length(3)
        browser.keys(Keys.ESCAPE)
        browser.until(lambda: not browser.all(".viewer"))
        browser.until(lambda: len(browser.all(".tile")) == 10)
        assert "grid" in focused(browser)
        browser.until(lambda: browser.all(".tile") and browser.all(".tile")[0].is_displayed())
        tile = browser.one(".tile")
        ActionChains(browser.driver).double_click(tile).perform()
        browser.one(".viewer .tools button:last-child").click()
        browser.until(lambda: "Similar items" in browser.one("h1").text)
        browser.go("#/rejected")
        browser.one(".tile").click()
        browser.until(lambda: "Restore" in browser.one("#selection").text)
        browser.all("#selection button")[0].click()
        browser.length(4)
        slider = browser.one("input[type=range]")
        wide = browser.driver.execute_script("return localStorage.getItem('unveil-tile')")
        slider.send_keys(*[Keys.ARROW_RIGHT] * 10)
        assert browser.driver.execute_script("return localStorage.getItem('unveil-tile')") != wide
        browser.go("#/class/3")
        browser.until(lambda: browser.one(".tile").size["width"] >= 184)
        browser.driver.execute_script("localStorage.removeItem('unveil-tile')")
        assert browser.complaints() == []
    assert (run / "thumbnails.sqlite").exists()


def test_on_a_phone_taps_add_up_and_the_bar_fits(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address, phone(browser):
        browser.open(address)
        browser.go("#/class/3")
        browser.until(lambda: len(browser.all(".tile")) >= 6)
        browser.one(".tile[aria-posinset='6']")
        for number in ("1", "2", "3"):
            box = browser.one(f".tile[aria-posinset='{number}']").rect
            point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
            browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
            browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            browser.until(lambda number=number: f"{number} selected" in browser.one("#selection").text)  # type: ignore[misc]
        for button in [browser.one("#selection"), *browser.all("#selection button")]:
            assert button.rect["x"] >= 0
            assert button.rect["x"] + button.rect["width"] <= 390
        for route in ("#/", "#/class/3", "#/map", "#/duplicates"):
            browser.go(route)
            browser.one("h1, canvas.map")
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390, route


@pytest.mark.skipif(AXE is None, reason="needs axe-core: npm install --no-save axe-core, or its file in UNVEIL_AXE")
@pytest.mark.parametrize("pictures", ["array", "none"])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, pictures: str) -> None:
    run = write_run(tmp_path / "run", pictures=pictures)
    problems: list[Any] = []

    def check(place: str) -> None:
        rules = ("color-contrast",) if place.startswith("dark") else ()  # the rest is as in the light
        problems.extend([place, *problem] for problem in browser.axe(*rules))

    with served(run) as address:
        browser.open(address)
        for scheme in ("light", "dark"):
            with browser.colors(scheme):
                for route in ("#/", "#/class/3", "#/questions", "#/map", "#/duplicates", "#/similar/40", "#/rejected"):
                    browser.go(route)
                    browser.until(lambda: browser.all("h1, canvas.map"))
                    check(f"{scheme} {route}")
                browser.go("#/class/3")
                browser.one(".tile")
                for keys in ((Keys.ENTER,), ("m",), ("s",), ("v",), ("?",)):
                    browser.until(lambda: not browser.all("dialog"))
                    browser.keys(*keys)
                    browser.one("dialog")
                    if keys == ("s",):
                        browser.one("dialog .part")
                    check(f"{scheme} {keys}")
                    browser.keys(Keys.ESCAPE)
                with phone(browser):
                    browser.keys(" ")
                    check(f"{scheme} phone")
                browser.keys(Keys.ESCAPE)
    assert not problems, json.dumps(problems, indent=1)


def wrong_run(folder: Path, **options: Any) -> Path:
    """2 is the known class 0; 3 and 4 are one class; 5 is two."""
    write_run(folder, each=40, clusters=6, **options)
    labels = np.repeat(np.arange(8), 40)
    places = np.array([0, 1, 0, 3, 3, 4, 6, 7])[labels]
    places[(labels == 5) & (np.arange(len(places)) % 2 == 0)] = 5
    draw = np.random.default_rng(5)
    np.save(folder / "features.npy", (np.eye(8, 16)[places] + 0.08 * draw.normal(size=(320, 16))).astype(np.float32))
    seal_again(folder)
    return folder


@pytest.mark.parametrize("small", [False, True])
def test_one_question_after_the_other(browser: Browser, tmp_path: Path, small: bool) -> None:
    run = wrong_run(tmp_path / "run")
    with served(run) as address, phone(browser) if small else nullcontext():
        browser.open(address)
        browser.go("#/questions")
        for number in range(3):
            browser.until(lambda: browser.one(".queue .primary").is_displayed())
            text = browser.one(".queue h1").text
            assert text in (
                "Is novel-0 the known class cat?",
                "Are novel-1 and novel-2 the same class?",
                "novel-3 looks mixed. Are these two classes?",
            )
            assert "expected to put right" in browser.one(".queue p").text
            assert len(browser.all(".sides section")) == 2
            if small:
                assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390
                browser.one(".queue .primary").click()
            else:
                browser.keys("y")
            browser.length(number + 1)
            browser.until(lambda text=text: browser.one(".queue h1").text not in ("", text))  # type: ignore[misc]
        while " or to " not in browser.one(".queue h1").text:
            text = browser.one(".queue h1").text
            browser.keys(Keys.ARROW_RIGHT)
            browser.until(lambda text=text: browser.one(".queue h1").text != text)  # type: ignore[misc]
        assert len(browser.all(".sides section canvas")) >= 2
        assert "All to " in browser.one(".queue .primary").text
        assert 0 < len(browser.all(".marks button")) <= 12
        browser.all(".marks button")[0].click()
        assert "Move 1 item to " in browser.one(".queue .primary").text
        if small:
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390
        browser.keys("n")  # it belongs to neither
        browser.length(5)
        browser.until(lambda: browser.one("#undo").is_enabled())
        assert focused(browser) != "body"
        assert browser.complaints() == []
    kinds = [json.loads(line)["kind"] for line in (run / "review.jsonl").read_text().splitlines()]
    assert sorted(kinds) == ["known", "merge", "move", "reject", "split"]


def test_texts_are_read_on_the_page(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="none")
    words = ("block", "pay", "lost", "order", "cancel", "freeze")
    texts = [f"please {words[row // 12]} my card, number {row}" for row in range(72)]
    (run / "texts.json").write_text(json.dumps(texts))
    with served(run) as address:
        browser.open(address)
        browser.card("novel-1").click()
        browser.until(lambda: "please order my card" in browser.tile(1).text)
        browser.until(lambda: "please order my card" in browser.one(".preview .text").text)
        browser.until(lambda: "Telling words" in browser.one(".profile").text)
        browser.until(lambda: browser.one(".profile .lines li").text.endswith(tuple("0123456789")))  # doubtful ones
        browser.keys("t")  # the suggested name
        browser.length(1)
        browser.until(lambda: browser.one("h1.holder").text == "order")
        browser.keys("s")
        browser.until(lambda: "please order my card" in browser.one("dialog .parts").text)
        browser.keys(Keys.ESCAPE)
        with phone(browser):
            browser.keys(Keys.ENTER)
            browser.until(lambda: "please order my card, number" in browser.one(".viewer .row").text)
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390
            browser.keys(Keys.ESCAPE)
        assert browser.complaints() == []


def test_the_map_has_names_pictures_and_the_selection_beside_it(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with served(run) as address:
        browser.open(address)
        browser.go("#/map")
        browser.until(lambda: len(browser.all(".legend button")) == 4)
        canvas = browser.one("canvas.map")
        browser.until(lambda: int(canvas.get_attribute("data-names") or 0) >= 3)  # known classes have names too
        browser.all(".legend button")[0].click()
        browser.until(lambda: len(browser.all(".side .tile")) == 12)
        assert "12 selected items" in browser.one(".side h2").text
        tile = browser.all(".side .tile")[0]
        ActionChains(browser.driver).key_down(Keys.CONTROL).click(tile).key_up(Keys.CONTROL).perform()
        browser.until(lambda: "11 selected" in browser.one("#selection").text)
        assert "Save list" in browser.one("#selection").text
        browser.keys(Keys.ESCAPE)
        browser.until(lambda: not browser.all(".side .tile"))
        browser.driver.execute_script("document.querySelector('canvas.map').focus()")
        browser.keys(*["+"] * 4)
        browser.until(lambda: canvas.get_attribute("data-pictures") == "true")
    with served(write_run(tmp_path / "touched")) as address, phone(browser):
        browser.open(address)
        browser.go("#/map")
        browser.until(lambda: browser.one("canvas.map").get_attribute("data-names"))
        box = browser.one("canvas.map").rect
        scale = "return document.querySelector('canvas.map').dataset.pictures"
        for step in range(8):  # two fingers apart
            apart = 20 + 20 * step
            middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            points = [
                {"x": middle[0] + sign * apart, "y": middle[1], "id": number} for number, sign in enumerate((-1, 1))
            ]
            kind = "touchStart" if step == 0 else "touchMove"
            browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        browser.until(lambda: browser.driver.execute_script(scale) == "true")
    browser.complaints()  # requests of the first page, whose server has ended
