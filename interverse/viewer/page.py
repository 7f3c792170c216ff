"""The page: the scene in the middle, causes on the left, what can be done on the right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from interverse.viewer.causes import CausePanel
from interverse.viewer.desk import PAD, PLAIN, Desk, Orders
from interverse.viewer.history import as_json, as_python
from interverse.viewer.panels import EpisodePanel, GhostPanel, VariablePanel
from interverse.viewer.scene import ViewerScene
from interverse.viewer.session import Session

_LEFT, _RIGHT = 370, 390  # widths of the two panels, pixels


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
