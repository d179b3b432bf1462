"""One browser for all tests of pages."""

from collections.abc import Iterator

import pytest
from browsing import CHROMIUM, DRIVER, Browser
from selenium import webdriver
from selenium.webdriver.chrome.service import Service


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver are not installed")
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
