"""Time on the page: steps and play, actions by name, undo, reset, policy and protocol."""

from __future__ import annotations

import html
from pathlib import PurePath
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.rollouts.policy import policy_names
from interverse.viewer.desk import Desk, changed_text


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
        self._parts: list[Any] = []
        self._add_actions()
        desk.buttons(
            "Moment",
            {"Undo": self._session.undo, "Snapshot": self._save, "Restore": self._restore},
            "Undo takes the last do back, and the steps since",
        )
        with desk.gui.add_folder("Episode, policy, protocol", expand_by_default=False):
            self._seed = desk.gui.add_number("Seed", self._session.seed, min=0, step=1)
            desk.button("Reset", self._reset, "A new episode with this seed")
            self._add_policies()
            self._add_protocols()

    # ----------------------------------------------------------------------- actions

    def _add_actions(self) -> None:
        """Adds a list per part of an action, where actions have names."""
        names = self._session.env.world.action_names(0)
        titles = ["Action"] if len(names) == 1 else ["Act on", "Action"]
        for title, part in zip(titles, names, strict=False):
            self._parts.append(self._desk.gui.add_dropdown(title, part))
        if self._parts:
            self._desk.button("Act", self._act, "Take this action, whatever the policy")

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
                raise InvalidValueError(
                    explain(f"no action {str(word)[:60]!r}", allowed=", ".join(part))
                )
        numbers = [part.index(word) for word, part in zip(chosen, names, strict=True)]
        self._session.step(self._as_action(numbers))
        return f"Acted: {html.escape(' '.join(chosen))}."

    def _as_action(self, numbers: list[int]) -> NDArray[Any]:
        single = isinstance(self._session.env.action_space, gym.spaces.Discrete)
        return np.array(numbers[0] if single else numbers)

    # -------------------------------------------------------------------------- time

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

    # ------------------------------------------------------------- policy and protocol

    def _add_policies(self) -> None:
        known = policy_names(self._session.env.world)
        # A page may name no files: the policies are those of the world and of the command line.
        present = self._session.policy
        self._policies = {name: name for name in known} | {policy_label(present): present}
        chosen = self._desk.gui.add_dropdown(
            "Policy", list(self._policies), initial_value=policy_label(present)
        )
        chosen.on_update(lambda _: self._desk.order("policy", lambda: self.use(chosen.value)))

    def use(self, policy: str) -> str:
        """Acts with one of the policies that the page offers."""
        if policy not in self._policies:
            raise InvalidValueError(
                explain(
                    f"no policy {str(policy)[:60]!r} to choose",
                    allowed=", ".join(self._policies),
                    fix="Start the viewer with --policy PATH",
                )
            )
        self._session.use(self._policies[policy])
        return f"Policy: {html.escape(policy)}."

    def _add_protocols(self) -> None:
        self._notes = {name: p.note for name, p in self._session.protocols.items()}
        if self._notes:
            chosen = self._desk.gui.add_dropdown("Protocol", list(self._notes))
            self._desk.button(
                "Draw",
                lambda: self.draw(chosen.value),
                "Intervene as this protocol would; again: anew",
            )

    def draw(self, name: str) -> str:
        """Intervenes as one of the protocols that the page offers."""
        if name not in self._notes:
            raise InvalidValueError(explain(f"no protocol {str(name)[:60]!r} to choose"))
        event = self._session.draw(name)
        note = f" ({html.escape(self._notes[name])})" if self._notes[name] else ""
        return f"{name}{note}. {changed_text(event.changed)}"
