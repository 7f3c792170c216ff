"""The page: status, buttons, tabs. Every click becomes an order; the world is never touched here.

Callbacks of viser run on threads of their own, so they only put orders; `Viewer` carries them out.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.core.files.json_text import parse_json
from interverse.viewer.canvas import ViewerCanvas
from interverse.viewer.causes import causes_text
from interverse.viewer.controls import TYPED, Control
from interverse.viewer.export import as_json, as_python
from interverse.viewer.imagine import Twins, imagine
from interverse.viewer.orders import Orders
from interverse.viewer.session import Session
from interverse.viewer.solids import Solids
from interverse.viewer.translate import Shown, value_from
from interverse.viewer.widgets import TOP, Widget, widgets

_DRAGGED, _TYPED = 0.05, 0.5  # seconds that a control must have rested
_OPEN, _OPEN_FOLDERS = 16, 2  # variables that are all shown; of more, some folders' are
_GOOD, _BAD, _PLAIN = "#087f5b", "#c92a2a", "#495057"
_PAD = "padding:2px 12px 6px 12px;font-size:13px;line-height:1.45;overflow-wrap:anywhere"
Order = Callable[[], str]  # returns what to tell the person


@final
class Page:
    """The controls of a session on a viser server."""

    def __init__(self, server: Any, session: Session, orders: Orders) -> None:
        self._server, self._session, self._orders = server, session, orders
        self._gui = server.gui
        self.playing = False
        self._twins: Twins | None = None
        self._controls: dict[str, Control] = {}
        shapes = session.shapes()
        self._solids = Solids(server, shapes) if shapes else None
        self._canvas = ViewerCanvas(server, session.picture()) if not shapes else None
        self._gui.configure_theme(show_logo=False, show_share_button=False)
        self._gui.set_panel_label(session.id)
        self._gui.main_panel.dock_right()
        self._gui.main_panel.set_width(430)
        self._status, self._message = self._gui.add_html(""), self._gui.add_html("")
        self._add_buttons()
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Variables"):
            self._add_variables()
        with tabs.add_tab("Causes"):
            self._add_causes()
        with tabs.add_tab("Imagine"):
            self._add_imagine()
        with tabs.add_tab("Export"):
            self._add_export()
        self.say("Drag a slider: it is a <code>do</code>.", _PLAIN)
        self.refresh()

    # -------------------------------------------------------------------- telling

    def say(self, text: str, color: str = _GOOD) -> None:
        """Shows one line of HTML under the status."""
        self._message.content = f'<div id="message" style="{_PAD};color:{color}">{text}</div>'

    def refuse(self, reason: str) -> None:
        """Shows why something was not done."""
        self.say(f"<b>Refused.</b> {html.escape(reason)}", _BAD)

    def refresh(self) -> None:
        """Brings everything on the page up to date with the session."""
        self.refresh_world()
        values = self._session.env.values
        for name, control in self._controls.items():
            if not self._orders.waiting(f"do/{name}"):
                control.show(values[name])
        self._python.content = f"```python\n{as_python(self._session)}```"

    def refresh_world(self) -> None:
        """Shows the world and where the episode stands."""
        self._status.content = f'<div id="status" style="{_PAD}">{self._standing()}</div>'
        if self._canvas is not None:
            self._canvas.show(self._session.picture())
        if self._solids is not None:
            self._solids.show(self._session.shapes())
        if self._solids is not None and self._camera.value:
            self._photo.image = self._session.picture()

    def _standing(self) -> str:
        session = self._session
        history = session.history
        parts = [f"seed {session.seed}", f"step {session.steps} of {session.env.world.max_steps}"]
        parts.append(f"return {history.earned:.4g}")
        known = session.env.variables.keys() - {"fractional_success"}
        told = {n: v for n, v in history.info.items() if np.ndim(v) == 0 and n not in known}
        parts += [f"{name.replace('_', ' ')} {float(value):.4g}" for name, value in told.items()]
        parts.append(f"{len(history.events)} done, {len(session.refused)} refused")
        parts += ["<b>episode ended</b>"] if history.ended else []
        return " · ".join(part.replace(" ", "&nbsp;") for part in parts)

    # -------------------------------------------------------------------- ordering

    def _order(self, key: str, order: Order, *, wait: float = 0.0) -> None:
        def carry_out() -> None:
            text = order()
            if text:
                self.say(text)

        self._orders.put(key, carry_out, wait=wait)

    def _button(self, label: str, order: Order, hint: str) -> None:
        button = self._gui.add_button(label, hint=hint)
        button.on_click(lambda _: self._order(label, order))

    def _buttons(self, label: str, orders: dict[str, Order], hint: str) -> None:
        group = self._gui.add_button_group(label, tuple(orders), hint=hint)

        def clicked(event: Any) -> None:
            chosen = event.target.value
            self._order(f"{label}/{chosen}", orders[chosen])

        group.on_click(clicked)

    # --------------------------------------------------------------------- buttons

    def _add_buttons(self) -> None:
        session = self._session
        self._buttons(
            "Time",
            {"Step": self._step, "Play": self._play, "Pause": self._pause},
            "One action of the policy, or action after action",
        )
        self._buttons(
            "Moment",
            {"Undo": session.undo, "Snapshot": self._save, "Restore": self._restore},
            "Undo takes the last do back, and the steps since",
        )
        with self._gui.add_folder("Episode, policy, protocol", expand_by_default=False):
            self._seed = self._gui.add_number("Seed", session.seed, min=0, step=1)
            self._button("Reset", self._reset, "A new episode with this seed")
            self._add_policies()
            self._add_protocols()
            if self._solids is not None:
                self._add_views()

    def _add_policies(self) -> None:
        known = ["random"]
        known += ["scripted"] if self._session.env.world.scripted_policy() is not None else []
        # A page may name no files: the policies are those of the world and of the command line.
        self._policies = list(dict.fromkeys([*known, self._session.policy]))
        chosen = self._gui.add_dropdown(
            "Policy", self._policies, initial_value=self._session.policy
        )
        chosen.on_update(lambda _: self._order("policy", lambda: self._use(chosen.value)))

    def _add_protocols(self) -> None:
        self._notes = {name: p.note for name, p in self._session.protocols.items()}
        chosen = self._gui.add_dropdown("Protocol", list(self._notes))
        self._button(
            "Draw",
            lambda: self._draw(chosen.value),
            "Intervene as this protocol would; again: anew",
        )

    def _add_views(self) -> None:
        follow = self._gui.add_checkbox("Follow", initial_value=True, hint="Keep it in the middle")
        follow.on_update(lambda _: self._order("follow", lambda: self._follow(follow.value)))
        self._camera = self._gui.add_checkbox("Camera", initial_value=False)
        blank = np.full((*self._session.env.world.render_size, 3), 255, dtype=np.uint8)
        self._photo = self._gui.add_image(blank, visible=False)
        self._camera.on_update(lambda _: self._order("camera", self._toggle_camera))

    def _step(self) -> str:
        self._session.step()
        return ""

    def _play(self) -> str:
        if self._session.history.ended:
            self._session.step()  # raises and says what to do
        self.playing = True
        return ""

    def _pause(self) -> str:
        self.playing = False
        return ""

    def _save(self) -> str:
        self._session.save()
        return f"Snapshot of step {self._session.steps}."

    def _restore(self) -> str:
        self._session.restore()
        return f"Back at step {self._session.steps}."

    def _reset(self) -> str:
        self.playing = False
        self._session.reset(int(self._seed.value))
        return f"A new episode, seed {self._session.seed}."

    def _use(self, policy: str) -> str:
        if policy not in self._policies:
            raise InvalidValueError(
                explain(
                    f"no policy {str(policy)[:60]!r} to choose",
                    allowed=", ".join(self._policies),
                    fix="Start the viewer with --policy PATH",
                )
            )
        self._session.use(policy)
        return f"Policy: {html.escape(policy)}."

    def _draw(self, name: str) -> str:
        if name not in self._notes:
            raise InvalidValueError(explain(f"no protocol {str(name)[:60]!r} to choose"))
        event = self._session.draw(name)
        note = f" ({html.escape(self._notes[name])})" if self._notes[name] else ""
        return f"{name}{note}. {_changed(event.changed)}"

    def _follow(self, on: bool) -> str:
        if self._solids is not None:
            self._solids.following = on
        return ""

    def _toggle_camera(self) -> str:
        self._photo.visible = self._camera.value
        return ""

    # ------------------------------------------------------------------- variables

    def _add_variables(self) -> None:
        env = self._session.env
        folders = widgets(env.variables, env.values)
        few = sum(map(len, folders.values())) <= _OPEN
        ordered = sorted(folders, key=lambda folder: self._rank(folder, folders[folder]))
        for place, folder in enumerate(ordered):
            with self._gui.add_folder(folder, expand_by_default=few or place < _OPEN_FOLDERS):
                for widget in folders[folder]:
                    control = Control(self._gui, widget, env.values[widget.name])
                    control.on_change(partial(self._set, control))
                    self._controls[widget.name] = control

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

    def _set(self, control: Control, given: Shown) -> None:
        name, typed = control.widget.name, control.widget.kind in TYPED
        wait = _TYPED if typed else _DRAGGED
        self._order(f"do/{name}", lambda: self._do(control, given), wait=wait)

    def _do(self, control: Control, given: Shown) -> str:
        name = control.widget.name
        value = value_from(control.widget, self._session.env.values[name], given)
        event = self._session.do({name: value})
        self._asked.value = name
        return f"<code>do {html.escape(name)}</code>. {_changed(event.changed)}"

    # ---------------------------------------------------------------------- causes

    def _add_causes(self) -> None:
        names = list(self._session.env.variables)
        self._asked = self._gui.add_dropdown("Variable", names)
        self._causes = self._gui.add_markdown("")

        self._asked.on_update(lambda _: self._orders.put("causes", self._tell_causes))
        self._tell_causes()

    def _tell_causes(self) -> None:
        env = self._session.env
        self._causes.content = causes_text(env.graph, env.world.variables[self._asked.value])

    # --------------------------------------------------------------------- imagine

    def _add_imagine(self) -> None:
        env = self._session.env
        names = [name for name, v in env.variables.items() if not v.read_only]
        self._gui.add_markdown("The same seed and the same actions, had this been done:")
        self._other = self._gui.add_dropdown("Variable", names)
        self._value = self._gui.add_text("Value", self._as_text(names[0]), hint="A number or list")
        self._at = self._gui.add_number("Before action", 0, min=0, step=1)
        self._other.on_update(
            lambda _: self._orders.put("other", lambda: self._offer(self._other.value))
        )
        self._button("Replay with this do", self._imagine, "What would have been")
        self._verdict = self._gui.add_markdown("")
        self._scrub = self._gui.add_slider("Step", 0, 1, 1, 0, visible=False)
        self._scrub.on_update(lambda _: self._orders.put("scrub", self._show_twins))
        blank = np.full((8, 16, 3), 255, dtype=np.uint8)
        self._pair = self._gui.add_image(blank, label="fact | counterfactual", visible=False)

    def _as_text(self, name: str) -> str:
        return json.dumps(self._session.env.values[name].tolist())

    def _offer(self, name: str) -> None:
        self._value.value = self._as_text(name)

    def _imagine(self) -> str:
        name = self._other.value
        try:
            value = parse_json(self._value.value, name)
        except FileFormatError:
            raise InvalidValueError(
                explain(f"{name} is {self._value.value!r}", allowed="a number or a list of numbers")
            ) from None
        self._twins = imagine(self._session, {name: value}, at=int(self._at.value))
        fact, twin = self._twins.fact, self._twins.twin
        differing = ", ".join(self._twins.differing[:12]) or "nothing"
        self._verdict.content = (
            f"Return **{fact.rewards.sum():.4g}** in fact, **{twin.rewards.sum():.4g}** had "
            f"`{name}` been {self._value.value} before action {int(self._at.value)}.\n\n"
            f"Different at the end: {differing}."
        )
        last = len(self._twins.steps) - 1
        self._scrub.max, self._scrub.visible = max(1, last), last > 0
        self._scrub.value, self._pair.visible = last, True
        self._show_twins()
        return "Imagined: see the picture below, the fact left, the counterfactual right."

    def _show_twins(self) -> None:
        if self._twins is not None:
            chosen = min(int(self._scrub.value), len(self._twins.steps) - 1)
            self._pair.image = self._twins.pictures[chosen]
            self._pair.label = f"step {self._twins.steps[chosen]}: fact | counterfactual"

    # ---------------------------------------------------------------------- export

    def _add_export(self) -> None:
        self._gui.add_markdown("What was done in this episode, as a curriculum:")
        name = self._session.id.replace("/", "_").removesuffix("-v1")
        self._button("Save Python", lambda: self._send(f"{name}.py", as_python), "A script")
        self._button("Save JSON", lambda: self._send(f"{name}.json", as_json), "All, with actions")
        self._python = self._gui.add_markdown("")

    def _send(self, name: str, write: Callable[[Session], str]) -> str:
        self._server.send_file_download(name, write(self._session).encode(), save_immediately=True)
        return f"Saved {name} to your downloads."


def _changed(names: tuple[str, ...]) -> str:
    return f"Changed: {html.escape(', '.join(names))}." if names else "Nothing changed."
