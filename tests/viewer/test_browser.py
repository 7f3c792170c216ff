"""The page in a real browser: a slider is moved, a refusal is read, the world is seen."""

from __future__ import annotations

import io
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.viewer.test_server import free_port

pytest.importorskip("viser")
playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.timeout(600)

# Software GL: the same on a machine with a graphics card and on one without.
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PATIENCE = 60_000  # milliseconds; a busy machine draws slowly without being wrong
SCENE = 650  # columns of the window that the panel leaves free
BLANK = 250  # darkest channel of what counts as background


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    running, pages = [], []

    def open_page(*words):
        port = free_port()
        command = [sys.executable, "-m", "interverse", "view", *words, "--port", str(port)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        line = running[-1].stdout.readline()
        url = line.partition("open ")[2].split()[0]
        page = browser.new_page(viewport={"width": 1100, "height": 850})
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        page.wait_for_selector("#message")
        pages.append(page)
        return Visit(page)

    yield open_page
    for page in pages:
        page.close()
    for process in running:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


class Visit:
    """What a person does on the page."""

    def __init__(self, page):
        self.page = page

    def tell(self, pattern):
        """Waits until the message says so."""
        playwright.expect(self.page.locator("#message")).to_contain_text(
            re.compile(pattern), timeout=PATIENCE
        )

    def status(self, text):
        playwright.expect(self.page.locator("#status")).to_contain_text(text, timeout=PATIENCE)

    def control(self, label):
        """Returns the first visible control of that label."""
        letters = "\u200b?".join(label)  # viser puts breaks without width into words
        named = self.page.locator("label").filter(has_text=re.compile(f"^{letters}$"))
        found = named.locator("visible=true").first
        return self.page.locator(f'[id="{found.get_attribute("for")}"]')

    def thumb(self, label):
        return self.control(label).get_by_role("slider")

    def drag(self, label, share):
        """Drags a slider to a share of its range."""
        thumb = self.thumb(label).bounding_box()
        track = self.control(label).locator(".mantine-Slider-track").bounding_box()
        self.page.mouse.move(thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(track["x"] + share * track["width"], thumb["y"] + 3, steps=8)
        self.page.mouse.up()

    def type(self, label, text):
        field = self.control(label)
        field.fill(text)
        field.press("Enter")

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def tab(self, name):
        self.page.get_by_role("tab", name=name).click()

    def scene(self):
        """Returns the pixels beside the panel, viser's notice about software GL closed."""
        for notice in self.page.locator(".mantine-Notification-closeButton").all():
            notice.click()
        self.page.wait_for_timeout(1500)
        shot = self.page.screenshot(timeout=PATIENCE)
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))[:, :SCENE].astype(int)

    def sees_another(self, before):
        """Waits until the scene looks otherwise, and returns it."""
        for _ in range(20):
            after = self.scene()
            if np.mean(np.abs(after - before).max(axis=-1) > 8) > 0.001:
                return after
        raise AssertionError("the scene stayed the same")


def painted(pixels):
    """Returns the share of the scene that is not background."""
    return np.mean(pixels.min(axis=-1) < BLANK)


def test_trifinger(visit):
    person = visit("trifinger/pushing-v1")
    before = person.scene()
    assert painted(before) > 0.15
    red = (before[..., 0] > 180) & (before[..., 1:] < 90).all(axis=-1)
    assert red.sum() > 200  # the block, over the rim of the stage

    person.drag("gravity", 0.6)
    person.tell(r"do gravity.*Changed: gravity\.")
    now = float(person.thumb("gravity").get_attribute("aria-valuenow"))
    assert -7.5 < now < -4.5

    person.type("cartesian_position", "0.24")
    person.tell(r"Refused\. ")
    playwright.expect(person.control("cartesian_position")).to_have_value("0")

    person.press("Step")
    person.status("step 1 of 251")
    person.tab("Causes")
    person.page.get_by_text("in the next step, it changes").wait_for()
    person.tab("Export")
    text = person.page.get_by_text("Stage(actor=Put(").first
    playwright.expect(text).to_contain_text(f"'gravity': {now:g}")
    person.press("Undo")
    person.tell("took back gravity and 1 step")
    person.status("step 0 of 251")


def test_chemistry(visit):
    person = visit("chemistry/chain-v1")
    before = person.scene()
    assert painted(before) > 0.2
    person.thumb("color").focus()
    person.page.keyboard.press("ArrowLeft")
    person.tell(r"do object_0/color.*object_0/color")
    after = person.sees_another(before)
    assert painted(after) > 0.2
    person.tab("Imagine")
    person.press("Replay with this do")
    person.tell("Imagined")


@pytest.mark.slow
def test_control(visit):
    person = visit("control/cheetah_run-v1")
    before = person.scene()
    assert painted(before) > 0.5
    person.type("visual_seed", "5")
    person.tell(r"do visual_seed.*floor/texture")
    person.sees_another(before)
    person.press("Play")
    playwright.expect(person.page.locator("#status")).to_contain_text(
        re.compile(r"step\s([5-9]|\d\d+)\sof"), timeout=PATIENCE
    )
    person.press("Pause")


@pytest.mark.slow
def test_rooms(visit):
    person = visit("rooms/single-v1", "--seed", "3")
    before = person.scene()
    assert painted(before) > 0.5
    person.drag("class", 0.9)
    person.tell(r"(do object/class.*Changed: .*object/class|Refused)")
    person.press("Step")
    person.status("step 1 of")
