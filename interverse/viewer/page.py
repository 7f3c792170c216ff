"""The page: the scene in the middle, causes on the left, what can be done on the right.

Its panels: variables, each a `do`; time, policy and protocol; the counterfactual.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any, final

import gymnasium as gym
import numpy as np

from interverse.core.errors import InterverseError, InvalidValueError, explain
from interverse.rollouts.policy import policy_names
from interverse.viewer.controls import (
    TOP,
    TYPED,
    Control,
    Shown,
    Widget,
    value_from,
    widget_of,
    widgets,
)
from interverse.viewer.desk import BEYOND, PAD, PLAIN, Desk, Orders, changed_text, listed
from interverse.viewer.ghost import Ghost
from interverse.viewer.graph import CausePanel
from interverse.viewer.history import as_json, as_python
from interverse.viewer.scene import ViewerScene
from interverse.viewer.session import Session

_LEFT, _RIGHT = 370, 390  # widths of the two panels, pixels
_DRAGGED, _TYPED = 0.05, 0.5  # seconds that a control must have rested
_OPEN, _OPEN_FOLDERS = 16, 2  # variables that are all shown; of more, some folders' are
_FORM = 10.0  # place of the value's control among the others


@final
class VariablePanel:
    """The controls of all variables; `on_refusal` hears of one whose `do` was refused."""

    def __init__(self, desk: Desk, on_refusal: Callable[[str], None]) -> None:
        self._desk, self._session, self._on_refusal = desk, desk.session, on_refusal
        self.controls: dict[str, Control] = {}
        env = self._session.env
        self._beyond = desk.gui.add_checkbox(
            BEYOND,
            initial_value=False,
            hint="Allow any value of a variable's domain, also outside its published spaces",
        )
        folders = widgets(env.variables, env.values)
        few = sum(map(len, folders.values())) <= _OPEN
        ordered = sorted(folders, key=lambda folder: self._rank(folder, folders[folder]))
        for place, folder in enumerate(ordered):
            with desk.gui.add_folder(folder, expand_by_default=few or place < _OPEN_FOLDERS):
                for widget in folders[folder]:
                    control = Control(desk.gui, widget, env.values[widget.name])
                    control.on_change(partial(self.set, control))
                    self.controls[widget.name] = control

    def _rank(self, folder: str, group: list[Widget]) -> int:
        """Returns where a folder stands: what moves first, then goals, then what has A and B."""
        declared = [self._session.env.variables[w.name] for w in group if not w.read_only]
        kinds = {variable.kind for variable in declared}
        placed = any(v.kind == "state" and v.space_a is not None for v in declared)
        if placed or kinds == {"state"}:
            return 0 if folder == TOP else 1
        if "goal" in kinds:
            return 2
        return 3 if any(variable.space_a is not None for variable in declared) else 4

    def set(self, control: Control, given: Shown) -> None:
        """Leaves the order to set a variable to what its control shows."""
        name, typed = control.widget.name, control.widget.kind in TYPED
        wait = _TYPED if typed else _DRAGGED
        self._desk.order(f"do/{name}", lambda: self._do(control, given), wait=wait)

    def _do(self, control: Control, given: Shown) -> str:
        name = control.widget.name
        try:
            value = value_from(control.widget, self._session.env.values[name], given)
            event = self._session.do({name: value}, check=not self._beyond.value)
        except InterverseError:
            self._on_refusal(name)
            raise
        return f"<code>do {html.escape(name)}</code>. {changed_text(event.changed)}"

    def refresh(self) -> None:
        """Shows the present values, but for controls that are being used."""
        values = self._session.env.values
        for name, control in self.controls.items():
            if not self._desk.orders.waiting(f"do/{name}"):
                control.show(values[name])


def policy_label(policy: str) -> str:
    """Returns a policy's name for a page, which shows no folder of the machine.

    >>> policy_label("/tmp/runs/ppo/policy"), policy_label("random")
    ('ppo/policy', 'random')
    """
    path = PurePath(policy)
    own = path.name not in ("policy", "export")  # a folder that each run has
    return path.name if own or len(path.parts) < 2 else f"{path.parent.name}/{path.name}"


@final
class EpisodePanel:
    """The controls of an episode."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._session = desk, desk.session
        desk.buttons(
            "Time",
            {"Step": self._step, "Play": self._play, "Pause": self._pause},
            "One action of the policy, or action after action",
        )
        names = self._session.env.world.action_names(0)  # a list per part, where they have names
        titles = ["Action"] if len(names) == 1 else ["Act on", "Action"]
        self._parts = [
            desk.gui.add_dropdown(title, part) for title, part in zip(titles, names, strict=False)
        ]
        if self._parts:
            desk.button("Act", self._act, "Take this action, whatever the policy")
        desk.buttons(
            "Moment",
            {"Undo": self._session.undo, "Snapshot": self._save, "Restore": self._restore},
            "Undo takes the last do back, and the steps since",
        )
        with desk.gui.add_folder("Episode, policy, protocol", expand_by_default=False):
            self._seed = desk.gui.add_number("Seed", self._session.seed, min=0, step=1)
            desk.button("Reset", self._reset, "A new episode with this seed")
            # A page may name no files: the policies are those of the world and of the command line.
            present, known = self._session.policy, policy_names(self._session.env.world)
            self._policies = {name: name for name in known} | {policy_label(present): present}
            policy = desk.gui.add_dropdown(
                "Policy", list(self._policies), initial_value=policy_label(present)
            )
            policy.on_update(lambda _: desk.order("policy", lambda: self.use(policy.value)))
            self._notes = {name: p.note for name, p in self._session.protocols.items()}
            if self._notes:
                chosen = desk.gui.add_dropdown("Protocol", list(self._notes))
                hint = "Intervene as this protocol would; again: anew"
                desk.button("Draw", lambda: self.draw(chosen.value), hint)

    def refresh(self) -> None:
        """Shows the names that actions have now."""
        names = self._session.env.world.action_names(0)
        for handle, part in zip(self._parts, names, strict=False):
            if tuple(handle.options) != part:
                place = tuple(handle.options).index(handle.value)
                handle.options = part
                handle.value = part[min(place, len(part) - 1)]

    def _act(self) -> str:
        names = self._session.env.world.action_names(0)
        chosen = [handle.value for handle in self._parts]
        for word, part in zip(chosen, names, strict=True):
            if word not in part:
                raise InvalidValueError(f"no action {str(word)[:60]!r}", allowed=", ".join(part))
        numbers = [part.index(word) for word, part in zip(chosen, names, strict=True)]
        single = isinstance(self._session.env.action_space, gym.spaces.Discrete)
        self._session.step(np.array(numbers[0] if single else numbers))
        return f"Acted: {html.escape(' '.join(chosen))}."

    def _step(self) -> str:
        self._session.step()
        return ""

    def _play(self) -> str:
        if self._session.history.ended:
            self._session.step()  # raises and says what to do
        self._desk.playing = True
        return ""

    def _pause(self) -> str:
        self._desk.playing = False
        return ""

    def _save(self) -> str:
        self._session.save()
        return f"Snapshot of step {self._session.steps}."

    def _restore(self) -> str:
        self._session.restore()
        return f"Back at step {self._session.steps}."

    def _reset(self) -> str:
        self._desk.playing = False
        self._session.reset(int(self._seed.value))
        return f"A new episode, seed {self._session.seed}."

    def use(self, policy: str) -> str:
        """Acts with one of the policies that the page offers."""
        if policy not in self._policies:
            raise InvalidValueError(
                f"no policy {str(policy)[:60]!r} to choose",
                allowed=", ".join(self._policies),
                fix="Start the viewer with --policy PATH",
            )
        self._session.use(self._policies[policy])
        return f"Policy: {html.escape(policy)}."

    def draw(self, name: str) -> str:
        """Intervenes as one of the protocols that the page offers."""
        if name not in self._notes:
            raise InvalidValueError(explain(f"no protocol {str(name)[:60]!r} to choose"))
        event = self._session.draw(name)
        note = f" ({html.escape(self._notes[name])})" if self._notes[name] else ""
        return f"{name}{note}. {changed_text(event.changed)}"


@final
class GhostPanel:
    """The form of a counterfactual, and the ghost that it made."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._session = desk, desk.session
        self.ghost: Ghost | None = None
        gui = desk.gui
        names = [name for name, v in self._session.env.variables.items() if not v.read_only]
        gui.add_markdown("The same seed and the same actions, had this been done:", order=1.0)
        self.chosen = gui.add_dropdown("do", names, order=2.0)
        self.chosen.on_update(
            lambda _: desk.order("ghost/variable", lambda: self.offer(self.chosen.value))
        )
        self._folder: Any = gui.add_folder("Value", order=_FORM)
        self.control = self._form(names[0])
        with gui.add_folder("Ghost", order=_FORM + 1):
            self.at = gui.add_number("Before action", 0, min=0, step=1)
            self._beyond = gui.add_checkbox(BEYOND, initial_value=False)
            desk.button("Imagine", self.imagine, "Play it as a ghost beside the fact")
            desk.button("Without my last do", self.imagine_without, "What if I had not?")
            desk.button("Clear", self.clear, "Remove the ghost")
            self._verdict = gui.add_html("")
        self.back = gui.add_slider("Look at step", 0, 1, 1, 0, order=_FORM + 2)
        self._live = True  # whether the present is looked at
        self.back.on_update(lambda event: self._look(event))

    def _form(self, name: str) -> Control:
        env = self._session.env
        value = env.values[name]
        with self._folder:
            return Control(self._desk.gui, widget_of(env.variables[name], value), value, asks=False)

    def offer(self, name: str) -> str:
        """Shows the control of another variable."""
        if name not in self._session.env.variables:
            raise InvalidValueError(explain(f"no variable {str(name)[:60]!r} to choose"))
        self.control.remove()
        self.control = self._form(name)
        return ""

    def imagine(self) -> str:
        """Makes the ghost of what the form says."""
        name = self.control.widget.name
        value = value_from(self.control.widget, self._session.env.values[name], self.control.read())
        return self._make({name: value}, int(self.at.value), f"had {name} been set")

    def imagine_without(self) -> str:
        """Makes the ghost of the world in which the last intervention was not made."""
        events = self._session.history.events
        if not events or events[-1].before is None:
            raise InvalidValueError("no intervention was made here", fix="Drag a slider")
        before = events[-1].before.history.trace[-1]
        do = {name: before[name] for name in events[-1].values}
        return self._make(do, events[-1].step, f"without the do on {', '.join(do)}")

    def _make(self, do: dict[str, Any], at: int, words: str) -> str:
        made = Ghost(self._session, do, at=at, check=not self._beyond.value)
        self.clear()
        self.ghost, self._words = made, words
        return "The ghost is the world that would have been; it goes on with the fact."

    def clear(self) -> str:
        """Removes the ghost."""
        if self.ghost is not None:
            self.ghost.close()
        self.ghost, self._verdict.content = None, ""
        return ""

    def _look(self, event: Any) -> None:
        if event.client_id is not None:  # not our own change
            self._live = self.back.value >= self.back.max
            self._desk.order("look", lambda: "")

    @property
    def step(self) -> int:
        """The step that is looked at."""
        last = self._session.steps
        return last if self._live or self._desk.playing else min(int(self.back.value), last)

    def follow(self) -> None:
        """Takes the ghost along with the session; one that cannot go on is removed."""
        last = self._session.steps
        self.back.max, self.back.disabled = max(1, last), last == 0
        self.back.value = self.step
        self._live = self.step == last
        if self.ghost is None:
            return
        try:
            if self.ghost.is_of(self._session.history):
                self.ghost.follow()
                differing = listed(self.ghost.differing(self.step))
                self._verdict.content = (
                    f'<div id="verdict" style="{PAD}">Return'
                    f" <b>{self._session.history.earned:.4g}</b> in fact,"
                    f" <b>{self.ghost.earned:.4g}</b> {html.escape(self._words)} before action"
                    f" {self.ghost.at}.<br>Different at step {self.step}:"
                    f" {html.escape(differing)}.</div>"
                )
            else:
                self.clear()
        except InterverseError as error:
            self.clear()
            self._desk.refuse(f"The ghost cannot go on. {error}")


@final
class Page:
    """A session on a viser server."""

    def __init__(self, server: Any, session: Session, orders: Orders) -> None:
        self._server, self._session, gui = server, session, server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.set_panel_label(session.id)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(_RIGHT)
        self._status = gui.add_html("")
        self.desk = Desk(gui, session, orders)
        self.episode = EpisodePanel(self.desk)
        self.scene = ViewerScene(server, self.desk)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Variables"):
            self.variables = VariablePanel(self.desk, lambda name: self.causes.refuse(name))
        with tabs.add_tab("Imagine"):
            self.ghosts = GhostPanel(self.desk)
        with tabs.add_tab("Export"):
            gui.add_markdown("What was done in this episode, as a curriculum:")
            name = session.id.replace("/", "_").removesuffix("-v1")
            self.desk.button("Save Python", lambda: self._send(f"{name}.py", as_python), "A script")
            hint = "All of it, with the actions"
            self.desk.button("Save JSON", lambda: self._send(f"{name}.json", as_json), hint)
            self._python = gui.add_markdown("")
        panel = gui.add_panel()
        with panel.add_tab("Causes"):
            self.causes = CausePanel(self.desk)
        panel.dock_left()
        panel.set_width(_LEFT)
        self.desk.say("Drag a slider: it is a <code>do</code>.", PLAIN)
        self.refresh()

    def refresh(self) -> None:
        """Brings everything on the page up to date with the session."""
        self.refresh_world()
        self.episode.refresh()
        self.variables.refresh()
        ghost, step = self.ghosts.ghost, self.ghosts.step
        differing = frozenset() if ghost is None else frozenset(ghost.differing(step))
        self.causes.refresh(() if ghost is None else ghost.trace, differing, step)
        self._python.content = f"```python\n{as_python(self._session)}```"

    def refresh_world(self) -> None:
        """Shows the world and where the episode stands."""
        session, history = self._session, self._session.history
        driver = session.env.driver
        parts = [f"seed {session.seed}", f"step {driver.steps[0]} of {driver.world.most_actions}"]
        parts.append(f"return {history.earned:.4g}")
        known = session.env.variables.keys() - {"fractional_success"}
        told = {n: v for n, v in history.info.items() if np.ndim(v) == 0 and n not in known}
        parts += [f"{name.replace('_', ' ')} {float(value):.4g}" for name, value in told.items()]
        parts.append(f"{len(history.events)} done, {len(session.refused)} refused")
        parts += ["<b>episode ended</b>"] if history.ended else []
        standing = " · ".join(part.replace(" ", "&nbsp;") for part in parts)
        self._status.content = f'<div id="status" style="{PAD}">{standing}</div>'
        self.ghosts.follow()
        self.scene.show(self.ghosts.step, self.ghosts.ghost)

    def _send(self, name: str, write: Callable[[Session], str]) -> str:
        self._server.send_file_download(name, write(self._session).encode(), save_immediately=True)
        return f"Saved {name} to your downloads."
