"""A session: every do is logged, refused, taken back, replayed, exported; orders wait a turn."""

import contextlib
import json
import threading
import time

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InterventionError, InvalidValueError, UnknownNameError
from interverse.rollouts.runner import Recorder
from interverse.viewer.desk import Orders
from interverse.viewer.ghost import Ghost
from interverse.viewer.graph import causes_text
from interverse.viewer.history import as_json, as_python
from interverse.viewer.scene import blended
from interverse.viewer.session import Session

SLIDER, PUSHING = "tutorial/slider-v1", "trifinger/pushing-v1"


@pytest.fixture
def opened():
    """Opens sessions and ghosts, and closes them in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda kind, *words, **options: stack.enter_context(
            contextlib.closing(kind(*words, **options))
        )


@pytest.fixture
def session(opened):
    return opened(Session, SLIDER)


def state(session):
    return {name: value.tolist() for name, value in session.env.values.items()}


def test_a_do_is_logged_with_what_followed(session):
    session.step()
    event = session.do({"box/size": [0.12, 0.12, 0.12]})
    assert event.step == 1
    assert event.changed == ("box/position", "box/size")
    assert session.history.events == (event,)


def test_a_dragged_slider_leaves_one_event_and_no_trace_of_the_way(session, opened):
    still = opened(Session, SLIDER)
    for size in (0.11, 0.15, 0.16, 0.13):
        session.do({"box/size": [size] * 3})
    still.do({"box/size": [0.13] * 3})
    assert len(session.history.events) == 1
    assert state(session) == state(still)
    session.do({"box/size": [0.1] * 3})  # as it was
    assert session.history.events == ()


def test_dos_on_other_variables_or_later_steps_are_kept_apart(session):
    session.do({"gravity": -5.0})
    session.do({"box/mass": 0.4})
    session.do({"gravity": -6.0})
    session.step()
    session.do({"gravity": -7.5})
    assert [(e.step, dict(e.values)) for e in session.history.events] == [
        (0, {"gravity": -5.0}),
        (0, {"box/mass": 0.4}),
        (0, {"gravity": -6.0}),
        (1, {"gravity": -7.5}),
    ]


def test_a_refusal_changes_nothing_and_is_kept(session):
    session.do({"box/mass": 0.4})
    before = state(session)
    with pytest.raises(InterventionError, match=r"box/mass.*0\.3.*0\.9"):
        session.do({"box/mass": 1.5})
    assert state(session) == before
    assert [dict(e.values) for e in session.history.events] == [{"box/mass": 0.4}]
    assert "box/mass" in session.refused[0].reason
    with pytest.raises(InterventionError, match="Did you mean 'box/mass'"):
        session.do({"box/mas": 1.0})
    assert state(session) == before


def test_undo_takes_back_the_last_do_and_the_steps_since(session):
    before = state(session)
    session.do({"gravity": -5.0})
    session.step()
    session.step()
    assert session.undo() == "took back gravity and 2 steps"
    assert state(session) == before
    assert session.steps == 0
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        session.undo()


def test_a_snapshot_outlives_a_reset(session):
    with pytest.raises(InvalidValueError, match="no moment was kept"):
        session.restore()
    session.do({"gravity": -5.0})
    session.step()
    session.save()
    kept = state(session)
    session.reset(7)
    assert session.history.events == ()
    assert session.seed == 7
    session.restore()
    assert state(session) == kept
    assert (session.seed, session.steps, len(session.history.events)) == (0, 1, 1)


def test_an_ended_episode_asks_for_a_reset(opened):
    session = opened(Session, SLIDER, max_steps=2)
    session.step()
    session.step()
    with pytest.raises(InvalidValueError, match="episode has ended"):
        session.step()
    session.reset(0)
    session.step()


def test_policies_by_name_and_path(session, opened):
    with pytest.raises(UnknownNameError, match="scripted"):
        session.use("scripted")
    with pytest.raises(UnknownNameError, match="no/such/folder"):
        session.use("no/such/folder")
    assert session.policy == "random"
    with pytest.raises(UnknownNameError, match="unknown policy"):
        Session(SLIDER, policy="nobody")
    scripted = opened(Session, PUSHING, policy="scripted")
    scripted.step()


def test_an_exported_policy_acts_and_one_of_another_world_says_so(session, tmp_path):
    torch = pytest.importorskip("torch")
    from interverse.rollouts.exported import Card, ExportedPolicy

    card = Card(
        layers=1, activation="tanh", squash=False, low=[-1.0] * 2, high=[1.0] * 2, trained={}
    )
    for width in (11, 7):
        weights = {"obs.mean": torch.zeros(width), "obs.std": torch.ones(width)}
        weights |= {"0.weight": torch.zeros(2, width), "0.bias": torch.tensor([0.5, -0.25])}
        ExportedPolicy(card, weights).save(tmp_path / str(width))
    session.use(str(tmp_path / "11"))
    session.step()
    assert session.history.actions[0].tolist() == [0.5, -0.25]
    session.use(str(tmp_path / "7"))
    with pytest.raises(InvalidValueError, match=r"fails on observations of tutorial/slider-v1"):
        session.step()
    assert session.steps == 1


def test_protocols_draw_what_an_evaluation_would_and_then_anew(opened):
    first, second = (opened(Session, PUSHING, seed=3) for _ in range(2))
    assert "P5" in first.protocols
    event = first.draw("P5")
    assert event.source == "P5"
    assert event.changed
    protocol = first.protocols["P5"]
    assert protocol.apply(second.env.driver, np.arange(1)) == {}
    assert state(first) == state(second)
    again = first.draw("P5")
    assert dict(again.values) != dict(event.values)
    first.undo()
    assert state(first) == state(second)


def test_a_protocol_of_another_world_says_so(opened):
    session = opened(Session, "control/pendulum_swingup-v1")
    with pytest.raises(InvalidValueError, match=r"other options.*--option"):
        session.draw("camera")
    with pytest.raises(UnknownNameError, match=r"'cameras'.*'camera'"):
        session.draw("cameras")
    first, second = session.draw("all"), session.draw("all")
    assert first.values["visual_seed"] != second.values["visual_seed"]
    own = opened(Session, "control/pendulum_swingup-v1", vary="camera")
    assert own.draw("camera").values["visual_seed"], "made with its options, as the fix says"
    with pytest.raises(InvalidValueError, match=r"other options: {'vary': 'all'}"):
        own.draw("all")


def played(session, dos):
    """Plays a session for five steps; returns the episode that a recorder saw of the same."""
    env = iv.make(session.id, **session.options)
    env.reset(seed=session.seed)
    with Recorder(env, env.observe()) as recorder:
        for step in range(5):
            if step in dos:
                session.do(dos[step])
                env.do(dos[step])
            session.step()
            env.step(session.history.actions[-1])
        episode = recorder.episode()
    env.close()
    return episode


@pytest.mark.parametrize(
    ("world", "dos", "do", "at"),
    [
        (SLIDER, {2: {"gravity": -6.0}}, {"box/friction": 0.5}, 3),
        (SLIDER, {0: {"box/mass": 0.4}, 2: {"gravity": -6.0}}, {"box/mass": 0.8}, 0),
        (SLIDER, {1: {"box/mass": 0.4}, 3: {"box/mass": 0.5}}, {"box/mass": 0.8}, 2),
        (SLIDER, {0: {"box/size": [0.1] * 3}}, {"box/position": [0.1, 0.1, 0.05]}, 0),
        (
            PUSHING,
            {2: {"block_0/cylindrical_position": [0.1, 0.5, 0.0325]}},
            {"block_0/cartesian_position": [0.05, 0.05, 0.0325]},
            1,
        ),
        (SLIDER, {2: {"gravity": -6.0}}, {}, 0),
        (PUSHING, {1: {"gravity": -8.0}}, {"block_0/cartesian_position": [0.05, 0.05, 0.0325]}, 2),
        ("chemistry/chain-v1", {1: {"edge_0_1": 0}}, {"object_0/color": 2}, 1),
        ("blocks/observed-3-v1", {}, {"block_0/position": [4, 4]}, 1),
    ],
)
def test_the_ghost_is_the_counterfactual_bit_for_bit(world, dos, do, at, opened):
    session = opened(Session, world, seed=3)
    fact = played(session, dos)
    twin, ghost = iv.counterfactual(fact, do, at), opened(Ghost, session, do, at=at)
    assert len(ghost.trace) == len(ghost.frames) == 6
    for name, values in twin.values.items():
        for step in range(6):
            assert np.array_equal(values[step], ghost.trace[step][name]), (name, step)
            assert np.array_equal(fact.values[name][step], session.history.trace[step][name])
    assert ghost.earned == twin.rewards.sum()
    other = {n for n, v in fact.values.items() if not np.array_equal(v[-1], twin.values[n][-1])}
    assert set(ghost.differing()) == other


def test_a_ghost_follows_steps_dos_and_undos(session, opened):
    session.step()
    ghost = opened(Ghost, session, {"box/mass": 0.9}, at=1)
    for step in range(4):
        if step == 1:
            session.do({"box/friction": 0.6})
        session.step()
        ghost.follow()
    session.undo()
    session.do({"box/mass": 0.35})
    session.step()
    ghost.follow()
    again = opened(Ghost, session, {"box/mass": 0.9}, at=1)
    assert len(ghost.trace) == len(again.trace) == 4
    for mine, theirs in zip(ghost.trace, again.trace, strict=True):
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert float(ghost.trace[-1]["box/mass"]) == 0.9  # its own do wins
    assert not ghost.is_of(Session(SLIDER).history)
    with pytest.raises(InvalidValueError, match=r"before action 9.*0 to 3"):
        Ghost(session, {"box/mass": 0.9}, at=9)
    with pytest.raises(InterventionError, match="box/mass"):
        Ghost(session, {"box/mass": 1.5})


def test_values_beyond_the_spaces_are_allowed_when_asked_for(session, opened):
    event = session.do({"box/mass": 1.5}, check=False)
    assert event.changed == ("box/mass",)
    session.step()
    ghost = opened(Ghost, session, {"box/mass": 2.0}, check=False)
    assert float(ghost.trace[0]["box/mass"]) == 2.0


def test_a_shared_environment_is_followed_from_where_it_is():
    env = iv.make(SLIDER)
    env.reset(seed=4)
    env.step(np.array([0.5, 0.5], dtype=np.float32))
    session = Session(env)
    env.do({"gravity": -5.0})
    env.step(np.array([0.5, -0.5], dtype=np.float32))
    with pytest.raises(InterventionError):
        env.do({"gravity": 5.0})
    (event,) = session.history.events
    assert (event.source, dict(event.values), event.step) == ("script", {"gravity": -5.0}, 0)
    assert len(session.refused) == 1
    ghost = Ghost(session, {"box/mass": 0.9})
    assert set(ghost.differing()) == {"box/mass", "box/position", "box/velocity"}
    with pytest.raises(InvalidValueError, match="script itself"):
        session.undo()
    assert session.picture().shape == (240, 320, 3)
    ghost.close()
    session.close()
    env.step(np.array([0.5, -0.5], dtype=np.float32))  # still the script's
    env.close()


def test_json_makes_the_episode_again(opened):
    session = opened(Session, PUSHING, seed=5, skip_frame=3)
    session.do({"block_0/size": [0.08, 0.07, 0.06]})
    session.step()
    session.draw("P2")
    session.step()
    with pytest.raises(InterventionError):
        session.do({"block_0/mass": 1.0})
    told = json.loads(as_json(session))
    env = iv.make(told["id"], **told["options"])
    env.reset(seed=told["seed"])
    for step in range(len(told["actions"]) + 1):
        for item in told["interventions"]:
            if item["step"] == step:
                env.do(item["do"], check=False)
        if step < len(told["actions"]):
            env.step(np.array(told["actions"][step], dtype=np.float32))
    assert {n: v.tolist() for n, v in env.values.items()} == state(session)
    assert "block_0/mass" in told["refusals"][0]["reason"]
    assert told["interventions"][1]["source"] == "P2"
    env.close()


def test_the_python_script_is_the_curriculum(opened):
    session = opened(Session, PUSHING, seed=5, skip_frame=3)
    session.do({"block_0/size": [0.08, 0.07, 0.06]})
    session.do({"gravity": -8.0})
    actions = []
    for step in range(3):
        if step == 2:
            session.do({"floor/color": [0.2, 0.3, 0.4]})
        session.step()
        actions.append(session.history.actions[-1])
    scope = {}
    exec(as_python(session), scope)
    for action in actions:
        scope["env"].step(action)
    values = {n: v.tolist() for n, v in scope["env"].unwrapped.values.items()}
    assert values == state(session)
    scope["env"].close()


def test_an_empty_session_exports_an_empty_curriculum(session):
    scope = {}
    exec(as_python(session), scope)
    assert scope["curriculum"].stages == ()
    scope["env"].close()


def test_causes_name_parents_and_effects(session):
    env = session.env
    text = causes_text(env.graph, env.variables["box/size"])
    assert "changes at once**: box/position" in text
    position = causes_text(env.graph, env.variables["box/position"])
    assert "box/friction" in position.splitlines()[2]


def test_a_dragged_slider_of_a_room_draws_one_picture_a_move(monkeypatch, opened):
    session = opened(Session, "rooms/single-v1", image_size=168)
    ghost = opened(Ghost, session, {"light/brightness": 1.2})
    session.quick = True
    yaw, drawn = float(session.env.values["camera/yaw"]), []
    frame = session.env.world.frame
    counted = lambda *a, **k: drawn.append(a) or frame(*a, **k)  # noqa: E731
    monkeypatch.setattr(session.env.world, "frame", counted)
    for turn in (0.01, 0.02, 0.03):
        session.do({"camera/yaw": yaw + turn})
        assert np.array_equal(session.picture(), session.env.observe()["image"])
    assert len(drawn) == 3
    ghost.follow()
    assert ghost.frames[0].shape == (168, 168, 3)
    session.quick = False  # at rest both are drawn at their best
    ghost.follow()
    assert ghost.frames[0].shape == session.picture().shape == (336, 336, 3)
    assert (blended(session.picture(), ghost.frames[0]) != session.picture()).any()


def drained(orders):
    while (order := orders.take(0.0)) is not None:
        order()


def test_the_last_of_a_key_wins():
    orders, done = Orders(), []
    for number in range(5):
        orders.put("slider", lambda n=number: done.append(n))
    orders.put("button", lambda: done.append("pressed"))
    drained(orders)
    assert done == [4, "pressed"]


def test_what_is_typed_rests_first():
    orders, done = Orders(), []
    orders.put("field", lambda: done.append("0"), wait=0.2)
    orders.put("field", lambda: done.append("0.5"), wait=0.2)
    orders.put("button", lambda: done.append("pressed"))
    drained(orders)
    assert done == ["pressed"]
    assert orders.waiting("field")
    order = orders.take(5.0)
    assert order is not None
    order()
    assert done == ["pressed", "0.5"]
    assert not orders.waiting("field")


def test_a_waiting_thread_wakes():
    orders = Orders()
    threading.Timer(0.05, lambda: orders.put("a", lambda: None)).start()
    start = time.monotonic()
    assert orders.take(10.0) is not None
    assert time.monotonic() - start < 5.0


def test_nothing_comes_after_its_time():
    assert Orders().take(0.01) is None
