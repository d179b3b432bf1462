"""A real browser on the review page and on reports, and what people do in it."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from unveil.pages.review.serve import prepare
from unveil.runs.reader import load

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
AXE = os.environ.get("UNVEIL_AXE")
"""The file axe.min.js; where it is named, as in continuous integration, it must be there."""
if AXE is None and Path("node_modules/axe-core/axe.min.js").is_file():
    AXE = "node_modules/axe-core/axe.min.js"


class Browser:
    """A few words for what people do."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        if not self.driver.current_url.startswith(address.partition("#")[0]):
            self.driver.get("about:blank")  # a page whose server has ended goes on asking for it
            self.complaints()
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

    def tile(self, position: int) -> WebElement:
        """The tile at a place of the grid, from 1, once it is drawn and no longer replaced."""
        selector, seen = f".tile[aria-posinset='{position}']", list[WebElement]()

        def settled() -> WebElement | None:
            seen.append(self.one(selector))
            return seen[-1] if len(seen) > 1 and seen[-1] == seen[-2] and seen[-1].is_displayed() else None

        found: WebElement = self.until(settled)
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

    def touch(self, *path: tuple[float, float]) -> None:
        """A finger that goes along these pixels of the window."""
        for number, (x, y) in enumerate(path):
            kind = "touchMove" if number else "touchStart"
            self.driver.execute_cdp_cmd(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y, "id": 0}]}
            )
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def tap(self, element: WebElement) -> None:
        """Touch the middle of an element, which is brought into view, until the page has seen a click.

        On a busy machine the end of a touch may come so late that the browser takes it for a long press.
        """
        script = """arguments[0].scrollIntoView({block: 'nearest', behavior: 'instant'});
            document.tapped = false;
            document.addEventListener('click', () => { document.tapped = true }, {once: true, capture: true});
            const box = arguments[0].getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]"""
        for _ in range(5):
            x, y = self.driver.execute_script(script, element)
            self.touch((x, y))
            end = time.monotonic() + 3
            while time.monotonic() < end:
                if self.driver.execute_script("return document.tapped"):
                    return
                time.sleep(0.02)
        raise AssertionError("the page has seen no click")

    def button(self, selector: str, text: str) -> WebElement:
        """The button within `selector` whose text begins like this."""
        script = """return [...document.querySelectorAll(arguments[0] + ' button')].find(
            one => one.textContent.startsWith(arguments[1]) && !one.disabled) ?? null"""
        found: WebElement = self.until(lambda: self.driver.execute_script(script, selector, text))
        return found

    def fits(self) -> bool:
        """Whether nothing makes the page wider than the window, and all that is in front of it stays within."""
        script = """const inside = [...document.querySelectorAll(
              'dialog button, dialog input, dialog li, #selection button, #trouble button')].every(one => {
                const box = one.getBoundingClientRect();
                return !box.width || (box.left >= 0 && box.right <= innerWidth);
            });
            return inside && document.documentElement.scrollWidth <= innerWidth"""
        return bool(self.driver.execute_script(script))

    def axe(self, *rules: str) -> list[Any]:
        """What axe-core finds on the page: the rule and where it is broken. All rules, or these."""
        assert AXE is not None
        self.driver.execute_script("if (!window.axe) { " + Path(AXE).read_text() + " }")
        found: list[Any] = self.driver.execute_async_script(
            "const [rules, done] = arguments; axe.run({...rules, resultTypes: ['violations']}).then("
            "result => done(result.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))])))",
            {"runOnly": list(rules)} if rules else {},
        )
        return found

    @contextmanager
    def colors(self, scheme: str) -> Iterator[None]:
        """`light` or `dark`, as the system would say."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


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


PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


@contextmanager
def phone(browser: Browser) -> Iterator[None]:
    """A screen of 390 pixels that is touched."""
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def focused(browser: Browser) -> str:
    script = (
        "const at = document.activeElement; return at === document.body ? 'body' : at.className || at.id || at.tagName"
    )
    found: str = browser.driver.execute_script(script)
    return found
