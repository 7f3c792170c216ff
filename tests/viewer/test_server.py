"""The viewer on a real viser server, without a browser, and the verb `view`."""

import re
import signal
import socket
import subprocess
import sys
import threading
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import interverse as iv
from interverse.cli import main
from interverse.cli.view import View, session_of
from interverse.core.errors import InvalidValueError
from interverse.viewer.session import Session

pytest.importorskip("viser")

from interverse.viewer.server import Viewer, check_port

WORLDS = (
    "blocks/observed-3-v1",
    "chemistry/chain-v1",
    "control/cheetah_run-v1",
    "rooms/single-v1",
    "trifinger/pushing-v1",
    "tutorial/slider-v1",
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def opened():
    made = []

    def open_viewer(world, **options):
        session = Session(world, **options)
        made.append((Viewer(session, port=free_port()), session))
        return made[-1][0]

    yield open_viewer
    for viewer, session in made:
        viewer.close()
        session.close()


def carry_out(viewer):
    viewer.run(0.0)
    while (order := viewer._orders.take(0.6)) is not None:
        viewer._carry_out(order)


def order(viewer, call):
    viewer._page.desk.order("order", call)
    carry_out(viewer)


def turn(viewer, name, value):
    page = viewer._page.variables
    page.set(page.controls[name], value)
    carry_out(viewer)


@pytest.mark.parametrize("world", WORLDS)
def test_the_page_shows_every_variable_and_follows_the_world(opened, world):
    viewer = opened(world)
    page, env = viewer._page, viewer._session.env
    assert set(page.variables.controls) == set(env.variables)
    order(viewer, page.episode._step)
    assert "step&nbsp;1&nbsp;of" in page._status.content
    for name, control in page.variables.controls.items():
        if control.widget.kind == "slider" and not control.widget.read_only:
            assert control.read() == pytest.approx(float(env.values[name]), rel=1e-5), name


def test_a_moved_slider_is_a_do_and_a_refused_one_goes_back(opened):
    viewer = opened("tutorial/slider-v1")
    page, env = viewer._page, viewer._session.env
    slider = page.variables.controls["gravity"]
    slider.handles[0].value = -5.0  # as if dragged: our own change puts no order
    page.variables.set(slider, -5.0)
    carry_out(viewer)
    assert float(env.values["gravity"]) == -5.0
    assert "Changed: gravity" in page.desk.message.content
    assert page.causes.chosen.value == "gravity"
    slider.handles[0].value = -3.5
    page.variables.set(slider, -3.5)
    carry_out(viewer)
    assert float(env.values["gravity"]) == -5.0
    assert slider.handles[0].value == -5.0
    assert "Refused" in page.desk.message.content
    assert "-3.5" in page.desk.message.content
    assert "'gravity': -5.0" in page._python.content


def test_a_playing_world_stops_at_the_end(opened):
    viewer = opened("tutorial/slider-v1", max_steps=3)
    page = viewer._page
    page.desk.order("play", page.episode._play)
    viewer.run(2.0)
    assert viewer._session.steps == 3
    assert not page.desk.playing
    assert "episode&nbsp;ended" in page._status.content
    order(viewer, page.episode._play)
    assert "episode has ended" in page.desk.message.content


def node(page, name):
    """Returns how a variable is drawn in the graph."""
    found = re.search(
        f'data-name="{name}" data-state="(.*?)" data-differs="(.)"', page.causes._graph.content
    )
    return found.groups()


def test_a_do_lights_up_what_follows_and_a_refusal_shows(opened):
    viewer = opened("tutorial/slider-v1")
    page = viewer._page
    turn(viewer, "box/size", (0.12, 0.12, 0.12))
    assert node(page, "box/size") == ("do", "0")
    assert node(page, "box/position") == ("changed", "0")
    assert node(page, "box/velocity") == ("follows", "0")
    assert node(page, "goal/position") == ("", "0")
    turn(viewer, "gravity", -3.5)
    assert node(page, "gravity") == ("refused", "0")
    assert "check=False" not in page.desk.message.content
    assert "Tick “Beyond A and B”" in page.desk.message.content
    page.variables._beyond.value = True
    turn(viewer, "gravity", -3.5)
    assert float(viewer._session.env.values["gravity"]) == -3.5
    assert node(page, "gravity") == ("do", "0")


def test_a_ghost_stands_in_the_scene_and_in_the_curve(opened):
    viewer = opened("tutorial/slider-v1")
    page, solids = viewer._page, viewer._page.scene._ghost
    for _ in range(3):
        viewer._session.step()
    order(viewer, lambda: page.ghosts.offer("box/mass"))
    assert page.ghosts.control.read() == 0.5  # as it is now, to be changed
    page.ghosts.control.handles[0].value = 0.9
    order(viewer, page.ghosts.imagine)
    assert "Different at step 3: box/mass, box/position" in page.ghosts._verdict.content
    assert "of <b>" not in page.ghosts._verdict.content
    (ghost,) = solids._handles.values()
    assert 0.0 < ghost[1].opacity < 1.0
    assert node(page, "box/position") == ("", "1")
    assert page.causes._curve.content.count('data-kind="ghost"') == 1
    order(viewer, page.episode._step)
    assert len(page.ghosts.ghost.trace) == 5
    page.ghosts.back.value, page.ghosts._live = 2, False
    order(viewer, lambda: "")
    assert "Different at step 2" in page.ghosts._verdict.content
    order(viewer, page.episode._reset)
    assert page.ghosts.ghost is None
    assert not solids._handles


def test_the_ghost_without_the_last_do_is_the_world_before_it(opened):
    viewer = opened("tutorial/slider-v1")
    page, plain = viewer._page, Session("tutorial/slider-v1")
    order(viewer, page.ghosts.imagine_without)
    assert "no intervention was made" in page.desk.message.content
    viewer._session.do({"box/mass": 0.9})
    for _ in range(2):
        viewer._session.step()
        plain.step(viewer._session.history.actions[-1])
    order(viewer, page.ghosts.imagine_without)
    last = page.ghosts.ghost.trace[-1]
    assert all(np.array_equal(last[name], value) for name, value in plain.env.values.items())
    plain.close()


@pytest.mark.parametrize(
    ("world", "chosen", "action"),
    [
        ("chemistry/chain-v1", ["object_1/color := 2 orange"], 7),
        ("blocks/observed-3-v1", ["block_1 right"], 7),
        ("rooms/single-v1", ["0 Box", "close"], [0, 1]),
    ],
)
def test_actions_are_chosen_by_name(opened, world, chosen, action):
    viewer = opened(world)
    page = viewer._page
    for handle, word in zip(page.episode._parts, chosen, strict=True):
        handle.value = word
    order(viewer, page.episode._act)
    assert "Acted: " in page.desk.message.content
    assert viewer._session.history.actions[0].tolist() == action
    page.episode._parts[0].value = "nonsense"
    order(viewer, page.episode._act)
    assert "no action &#x27;nonsense&#x27;" in page.desk.message.content


def test_classes_are_chosen_by_name(opened):
    viewer = opened("rooms/single-v1")
    page = viewer._page
    control = page.variables.controls["object/class"]
    assert control.widget.kind == "choice"
    assert control.read() == "Box"
    page.variables.set(control, "Fridge")
    carry_out(viewer)
    shown = page.variables.controls["object/class"].read()
    assert page.episode._parts[0].options[0] == f"0 {shown}"
    page.variables.set(control, "Dragon")
    carry_out(viewer)
    assert "&#x27;Dragon&#x27;" in page.desk.message.content


def test_the_scene_is_remade_where_a_shape_changes_and_moved_elsewhere(opened):
    viewer = opened("trifinger/pushing-v1")
    page = viewer._page
    before = {name: made[1] for name, made in page.scene._fact._handles.items()}
    viewer._session.do({"block_0/color": [0.0, 0.0, 1.0], "goal_0/cartesian_position": [0, 0, 0.1]})
    page.refresh()
    after = {name: made[1] for name, made in page.scene._fact._handles.items()}
    assert {name for name in before if before[name] is not after[name]} == {"geom/block_0"}
    assert after["geom/goal_0"].position == pytest.approx(np.array([0.0, 0.0, 0.111]))


def test_a_taken_port_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidValueError, match=f"cannot listen on 127.0.0.1:{port}.*--port"):
            check_port("127.0.0.1", port)
    with pytest.raises(InvalidValueError, match="port is 0"):
        check_port("127.0.0.1", 0)


def test_it_stops_by_itself_after_so_many_seconds(capsys):
    port = free_port()
    words = ["tutorial/slider-v1", "--port", str(port), "--seconds", "0.2", "--seed", "3"]
    assert main(["view", *words]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    assert line.startswith(f"tutorial/slider-v1: open http://127.0.0.1:{port}/?token=")
    assert line.endswith(" in a browser; Ctrl-C stops")


def test_a_run_plays_its_policy_in_its_own_world_while_sliders_are_pulled(opened, tmp_path):
    torch = pytest.importorskip("torch")
    from interverse.rollouts.exported import Card, ExportedPolicy

    trained = {"config": {"task": "tutorial/slider-v1"}, "options": {"max_steps": 7}}
    card = Card(
        layers=1, activation="tanh", squash=False, low=[-1.0] * 2, high=[1.0] * 2, trained=trained
    )
    weights = {"obs.mean": torch.zeros(11), "obs.std": torch.ones(11)}
    weights |= {"0.weight": torch.zeros(2, 11), "0.bias": torch.tensor([0.5, -0.25])}
    ExportedPolicy(card, weights).save(tmp_path / "run" / "policy")
    for words in (
        {"id": str(tmp_path / "run")},
        {"id": "tutorial/slider-v1", "policy": str(tmp_path / "run")},
    ):
        session = session_of(View(**words))
        viewer = Viewer(session, port=free_port())
        page = viewer._page
        page.desk.order("play", page.episode._play)
        page.variables.set(page.variables.controls["gravity"], -5.0)
        while not session.history.ended:
            viewer.run(0.2)
        assert (session.id, session.env.world.max_steps, session.steps) == (
            "tutorial/slider-v1",
            7,
            7,
        )
        assert [action.tolist() for action in session.history.actions] == [[0.5, -0.25]] * 7
        assert [dict(event.values) for event in session.history.events] == [{"gravity": -5.0}]
        viewer.close()
        session.close()


def test_ctrl_c_is_clean():
    command = [sys.executable, "-m", "interverse", "view", "tutorial/slider-v1"]
    with subprocess.Popen(
        [*command, "--port", str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert "Ctrl-C stops" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out.splitlines()[-1], err) == (0, "stopped", "")


@pytest.mark.parametrize("world", ["chemistry/chain-v1", "tutorial/slider-v1"])
def test_a_script_and_its_page_share_the_environment(world):
    env = TimeLimit(iv.make(world), 50)  # wrapped, as scripts have them
    inner = env.unwrapped
    with iv.view(env) as page:
        assert status_of(page.url)[0] == 200
        assert f'<iframe src="{page.url}&websocket=ws%3A%2F%2F' in page._repr_html_()
        env.reset(seed=5)
        for _ in range(3):
            env.step(env.action_space.sample())
        desk, session = page._viewer._page.desk, page._session
        assert (session.seed, session.steps) == (5, 3)
        (name, value) = ("gravity", -5.0) if "slider" in world else ("cpt/gain", 2.0)
        done = threading.Event()
        desk.order("do", lambda: str(session.do({name: value}).step))
        desk.order("told", lambda: done.set() or "")
        assert done.wait(60)
        assert float(inner.values[name]) == value
        env.step(env.action_space.sample())
        assert session.history.events[0].step == 3
        snapshot = inner.snapshot()
        inner.restore(snapshot)
        assert session.history.start.snapshot is not None
        url = page.url
    env.step(env.action_space.sample())
    assert not {"step", "reset"} & vars(inner).keys()
    assert not inner.driver.listeners
    with pytest.raises(URLError):
        urlopen(url, timeout=10)
    page.close()  # again: nothing happens
    env.close()


def test_only_worlds_of_interverse_can_be_viewed():
    with pytest.raises(InvalidValueError, match=r"env is a .*CartPole.*iv\.make"):
        iv.view(gym.make("CartPole-v1"))


def status_of(url, **headers):
    try:
        with urlopen(Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers
    except HTTPError as error:
        return error.code, error.headers


def test_only_the_whole_url_opens_the_page_and_the_socket(opened):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    viewer = opened("tutorial/slider-v1")
    bare = viewer.url.partition("/?")[0]
    assert status_of(bare)[0] == 403
    assert status_of(f"{bare}/?token=guess")[0] == 403
    code, headers = status_of(viewer.url)
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert code == 200
    assert "SameSite=Strict" in headers["Set-Cookie"]
    socket_url = bare.replace("http", "ws")
    refused = [{}, {"Cookie": cookie, "Origin": "http://evil.example"}, {"Origin": bare}]
    for given in refused:
        with pytest.raises(InvalidStatus, match="403"):
            connect(socket_url, additional_headers=given)
    connect(socket_url, additional_headers={"Cookie": cookie, "Origin": bare}).close()


@pytest.mark.parametrize("policy", ["/etc/passwd", "", "..", "scripted-by-nobody", "x" * 10_000])
def test_the_page_may_name_no_file(opened, policy):
    viewer = opened("tutorial/slider-v1")
    order(viewer, lambda: viewer._page.episode.use(policy))
    assert "Refused" in viewer._page.desk.message.content
    assert viewer._session.policy == "random"


def test_no_order_of_a_page_stops_the_server(opened):
    viewer = opened("tutorial/slider-v1")
    page = viewer._page
    draw, offer = page.episode.draw, page.ghosts.offer
    for bad in (lambda: draw("none"), lambda: int("x"), lambda: offer("none")):
        order(viewer, bad)
        assert "Refused" in page.desk.message.content
