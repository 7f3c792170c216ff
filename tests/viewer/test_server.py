"""The viewer on a real viser server, without a browser, and the verb `view`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from interverse.cli import main
from interverse.core.errors import InvalidValueError
from interverse.viewer.session import Session

pytest.importorskip("viser")

from interverse.viewer.server import Viewer, check_port

WORLDS = ("chemistry/chain-v1", "rooms/single-v1", "trifinger/pushing-v1", "tutorial/slider-v1")


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


@pytest.mark.parametrize("world", WORLDS)
def test_the_page_shows_every_variable_and_follows_the_world(opened, world):
    viewer = opened(world)
    page, env = viewer._page, viewer._session.env
    assert set(page._controls) == set(env.variables)
    page._order("step", page._step)
    carry_out(viewer)
    assert "step&nbsp;1&nbsp;of" in page._status.content
    for name, control in page._controls.items():
        if control.widget.kind == "slider" and not control.widget.read_only:
            assert control.read() == pytest.approx(float(env.values[name]), rel=1e-5), name


def test_a_moved_slider_is_a_do_and_a_refused_one_goes_back(opened):
    viewer = opened("tutorial/slider-v1")
    page, env = viewer._page, viewer._session.env
    slider = page._controls["gravity"]
    slider.handles[0].value = -5.0  # as if dragged: our own change puts no order
    page._set(slider, -5.0)
    carry_out(viewer)
    assert float(env.values["gravity"]) == -5.0
    assert "Changed: gravity" in page._message.content
    assert page._asked.value == "gravity"
    slider.handles[0].value = -3.5
    page._set(slider, -3.5)
    carry_out(viewer)
    assert float(env.values["gravity"]) == -5.0
    assert slider.handles[0].value == -5.0
    assert "Refused" in page._message.content
    assert "-3.5" in page._message.content
    assert "'gravity': -5.0" in page._python.content


def test_a_playing_world_stops_at_the_end(opened):
    viewer = opened("tutorial/slider-v1", max_steps=3)
    page = viewer._page
    page._order("play", page._play)
    viewer.run(2.0)
    assert viewer._session.steps == 3
    assert not page.playing
    assert "episode&nbsp;ended" in page._status.content
    page._order("play", page._play)
    carry_out(viewer)
    assert "episode has ended" in page._message.content


def test_imagining_shows_both_worlds(opened):
    viewer = opened("tutorial/slider-v1")
    page = viewer._page
    for _ in range(3):
        viewer._session.step()
    page._other.value = "box/mass"
    carry_out(viewer)
    assert page._value.value == "0.5"  # as it is now, to be changed
    page._value.value = "0.9"
    page._order("imagine", page._imagine)
    carry_out(viewer)
    assert "Different at the end: box/mass" in page._verdict.content
    assert page._pair.image.shape == (240, 644, 3)
    page._value.value = "heavy"
    page._order("imagine", page._imagine)
    carry_out(viewer)
    assert "box/mass is &#x27;heavy&#x27;" in page._message.content


def test_the_scene_is_remade_where_a_shape_changes_and_moved_elsewhere(opened):
    viewer = opened("trifinger/pushing-v1")
    page = viewer._page
    before = {name: made[1] for name, made in page._solids._handles.items()}
    viewer._session.do({"block_0/color": [0.0, 0.0, 1.0], "goal_0/cartesian_position": [0, 0, 0.1]})
    page.refresh()
    after = {name: made[1] for name, made in page._solids._handles.items()}
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["chemistry/chan-v1"], "chemistry/chain-v1"),
        (["tutorial/slider-v1", "--policy", "nobody"], "unknown policy 'nobody'"),
        (["tutorial/slider-v1", "--option", "depth"], "NAME=VALUE"),
        (["tutorial/slider-v1", "--port", "70000"], "1 to 65535"),
        (["tutorial/slider-v1", "--seed", "-1"], "seed"),
    ],
    ids=["id", "policy", "option", "port", "seed"],
)
def test_a_mistake_is_one_line(words, told, capsys):
    port = [] if "--port" in words else ["--port", str(free_port())]
    assert main(["view", *words, *port]) == 2
    said = capsys.readouterr().err.strip()
    assert told in said
    assert "\n" not in said


def test_it_stops_by_itself_after_so_many_seconds(capsys):
    port = free_port()
    words = ["tutorial/slider-v1", "--port", str(port), "--seconds", "0.2", "--seed", "3"]
    assert main(["view", *words]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    assert line.startswith(f"tutorial/slider-v1: open http://127.0.0.1:{port}/?token=")
    assert line.endswith(" in a browser; Ctrl-C stops")


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


def test_without_the_extra_one_line_names_it():
    code = (
        "import sys; sys.modules['viser'] = None; from interverse.cli import main; "
        "sys.exit(main(['view', 'tutorial/slider-v1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "interverse view: viser is not installed. "
        "Install it with: pip install 'interverse[view]'.\n"
    )


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
    viewer._page._order("policy", lambda: viewer._page._use(policy))
    carry_out(viewer)
    assert "Refused" in viewer._page._message.content
    assert viewer._session.policy == "random"


def test_no_order_of_a_page_stops_the_server(opened):
    viewer = opened("tutorial/slider-v1")
    page = viewer._page
    for order in (lambda: page._draw("none"), lambda: int("x"), lambda: page._offer("none")):
        page._order("bad", order)
        carry_out(viewer)
        assert "Refused" in page._message.content
