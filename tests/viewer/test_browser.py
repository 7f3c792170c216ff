"""The page in a real browser: a slider is moved, a refusal is read, the world is seen."""

import io
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import interverse as iv
from tests.viewer.test_server import free_port

pytest.importorskip("viser")
playwright = pytest.importorskip("playwright.sync_api")

# Software GL: the same on a machine with a graphics card and on one without.
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PATIENCE = 60_000  # milliseconds; a busy machine draws slowly without being wrong
WINDOW, SCENE = {"width": 1500, "height": 900}, slice(410, 1090)  # and its columns between panels
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
    running, pages, problems = [], [], []

    def open_page(*words):
        port = free_port()
        command = [sys.executable, "-m", "interverse", "view", *words, "--port", str(port)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        line = running[-1].stdout.readline()
        url = line.partition("open ")[2].split()[0]
        page = browser.new_page(viewport=WINDOW)
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: said.type == "error" and problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        page.wait_for_selector("#message")
        pages.append(page)
        return Visit(page)

    yield open_page
    for page in pages:
        page.close()
    assert problems == []
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

    def choose(self, label, option):
        """Chooses from a list by name."""
        self.control(label).click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def node(self, name, **states):
        """Waits until a variable is drawn so in the graph."""
        wanted = "".join(f'[data-{state}="{value}"]' for state, value in states.items())
        self.page.locator(f'.node[data-name="{name}"]{wanted}').wait_for()

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
        self.control(label).click(click_count=3)
        self.page.keyboard.type(text)

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
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))[:, SCENE].astype(int)

    def passes_step(self, least):
        """Waits until the episode has come so far."""
        number = r"parseInt(document.querySelector('#status').innerText.match(/step\s(\d+)/)[1])"
        self.page.wait_for_function(f"{number} >= {least}")

    def imagines(self, before, least, name, *, press="Without my last do"):
        """Makes a ghost, and waits until it is seen in the scene and in the graph."""
        if press != "Imagine":
            self.tab("Imagine")
        self.press(press)
        self.tell("The ghost is the world that would have been")
        self.node(name, differs=1)
        assert ghostly(self.sees_another(before)) > ghostly(before) + least

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


def ghostly(pixels):
    """Returns how many pixels have the ghost's tint: blue well above green."""
    _, green, blue = np.moveaxis(pixels, -1, 0)
    return int(np.sum((blue - green > 25) & (blue > 90)))


@pytest.mark.slow
def test_tutorial(visit):
    person = visit("tutorial/slider-v1")
    before = person.scene()
    assert painted(before) > 0.15

    person.drag("gravity", 0.6)
    person.tell(r"do gravity.*Changed: gravity\.")
    now = float(person.thumb("gravity").get_attribute("aria-valuenow"))
    assert -7.5 < now < -4.5
    person.node("gravity", state="do")
    person.node("box/velocity", state="follows")
    person.node("goal/position", state="")
    person.drag("gravity", 1.0)
    person.tell(r"Refused\. .*Tick “Beyond A and B”")
    person.node("gravity", state="refused")
    now = float(person.thumb("gravity").get_attribute("aria-valuenow"))  # as it was before

    for step in (1, 2, 3):
        person.press("Step")
        person.status(f"step {step} of 100")
    person.tab("Export")
    text = person.page.get_by_text("Stage(actor=SetValues(").first
    playwright.expect(text).to_contain_text(f"'gravity': {now:g}")
    person.press("Undo")
    person.tell("took back gravity and 3 steps")
    person.status("step 0 of 100")


def test_chemistry(visit):
    person = visit("chemistry/chain-v1")
    before = person.scene()
    assert painted(before) > 0.2
    person.choose("Action", "object_0/color := 4 red")
    person.press("Act")
    person.tell("Acted: object_0/color := 4 red")
    person.status("step 1 of 100")
    acted = person.sees_another(before)
    person.choose("color", "1 brown")
    person.tell(r"do object_0/color.*Changed: object_0/color")
    person.node("object_0/color", state="do")
    person.node("object_4/color", state="follows")
    after = person.sees_another(acted)
    person.imagines(after, 500, "object_0/color")


@pytest.mark.slow
def test_trifinger(visit, tmp_path):
    person = visit("trifinger/pushing-v1", "--policy", "scripted")
    before = person.scene()
    red = (before[..., 0] > 180) & (before[..., 1:] < 90).all(axis=-1)
    assert red.sum() > 200  # the block, over the rim of the stage
    person.type("cartesian_position", "0.24")
    person.tell(r"Refused\. ")
    playwright.expect(person.control("cartesian_position")).to_have_value("0")
    person.type("cartesian_position", "0.06")
    person.tell(r"do block_0/cartesian_position.*Changed")
    person.node("block_0/cartesian_position", state="do")
    person.node("block_0/cylindrical_position", state="changed")
    moved = person.sees_another(before)
    person.imagines(moved, 200, "block_0/cartesian_position")
    person.press("Play")
    person.passes_step(20)
    person.press("Pause")
    curve = person.page.locator('polyline[data-kind="ghost"]').first
    curve.wait_for(state="attached")  # level while nothing moves, which counts as hidden
    person.press("Clear")
    person.node("block_0/cartesian_position", differs=0)


@pytest.mark.slow
def test_a_script_is_watched_in_a_page_of_another_site(browser, tmp_path):
    env = iv.make("tutorial/slider-v1")
    env.reset(seed=0)
    with iv.view(env) as live:
        notebook = tmp_path / "notebook.html"
        notebook.write_text(f"<html><body>{live._repr_html_()}</body></html>")
        page = browser.new_page(viewport=WINDOW)
        page.set_default_timeout(PATIENCE)
        page.goto(notebook.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("#message").wait_for()
        for _ in range(5):
            env.step(env.action_space.sample())
        playwright.expect(frame.locator("#status")).to_contain_text("step 5 of", timeout=PATIENCE)
        frame.get_by_role("button", name="Step", exact=True).click()
        playwright.expect(frame.locator("#status")).to_contain_text("step 6 of", timeout=PATIENCE)
        assert int(env.driver.steps[0]) == 6
        page.close()
    env.close()
