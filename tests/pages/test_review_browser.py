"""The review page in a real browser, as people use it."""

import csv
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from review_runs import write_run
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from unveil.pages.review.serve import prepare
from unveil.runs.reader import load

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
HOSTILE = "<img src=x onerror=document.title='owned'>"


class Browser:
    """A few words for what people do."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)
        self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, "body[data-ready]"))

    def until(self, condition: Callable[[], Any]) -> Any:
        waiting = WebDriverWait(self.driver, 60, 0.05, [StaleElementReferenceException])  # tiles come and go
        return waiting.until(lambda _: condition())

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        found: WebElement = self.until(lambda: next(iter(self.all(selector)), None))
        return found

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def length(self, length: int) -> None:
        """Wait until the log has so many entries."""
        script = """return fetch('/api/state', {headers: {'X-Unveil-Key': localStorage.getItem('unveil-key')}})
            .then(answer => answer.json()).then(state => state.length)"""
        self.until(lambda: self.driver.execute_script(script) == length)

    def names(self) -> list[str]:
        script = "return [...document.querySelectorAll('.cards:not(.small) button.name')].map(one => one.textContent)"
        found: list[str] = self.driver.execute_script(script)
        return found

    def card(self, name: str) -> WebElement:
        script = """return [...document.querySelectorAll('.card')].find(
            one => one.querySelector('button.name')?.textContent === arguments[0]) ?? null"""
        found: WebElement = self.until(lambda: self.driver.execute_script(script, name))
        return found

    def go(self, route: str) -> None:
        self.driver.execute_script("location.hash = arguments[0]", route)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    quiet = ["background-networking", "component-update", "sync", "gpu", "dev-shm-usage"]
    arguments = ["--headless=new", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    for argument in [*arguments, "--window-size=1280,900", f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield Browser(driver)
    driver.quit()


@contextmanager
def served(run: Path) -> Iterator[str]:
    server, bound, links = prepare(load(run), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield links.address
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def command(run: Path) -> Iterator[str]:
    """`unveil review` in a process of its own."""
    line = [sys.executable, "-m", "unveil", "review", str(run), "--no-browser"]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split(": ", 1)[1].strip()
        finally:
            process.terminate()


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
        tiles = sorted(browser.all(".tile"), key=lambda tile: int(tile.get_attribute("aria-posinset") or 0))
        tiles[0].click()
        ActionChains(browser.driver).key_down(Keys.SHIFT).click(tiles[2]).key_up(Keys.SHIFT).perform()
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
    found = exported(run)
    assert sorted(found.values()) == [3, 6, 15, 24]
    assert found["fox"] == 15
    assert browser.complaints() == []


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
        last = browser.one(".tile[aria-posinset='3000']")
        assert last.get_attribute("aria-setsize") == "3000"
        assert len(browser.all(".tile")) < 200
        drawn = "const tile = arguments[0]; return tile.drawn === true"
        browser.until(lambda: browser.driver.execute_script(drawn, last))
        ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        browser.until(lambda: "3,000 selected" in browser.one("#selection").text)
        browser.keys("x")
        browser.length(1)
        browser.until(lambda: "No novel classes" in browser.one("h1").text)
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
