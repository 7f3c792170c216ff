"""Films of episodes: an address in the results means the episode that was scored."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError
from interverse.protocols.protocol import Protocol
from interverse.protocols.record import describe, protocol_from
from interverse.reports.episodes import film
from interverse.results import Results, highlights

SLIDER = "tutorial/slider-v1"


@pytest.mark.parametrize("paired", [False, True])
def test_the_film_is_of_the_episode_it_names(paired, tmp_path):
    grid = {"box/mass": (0.5, 0.7, 0.9), "box/friction": (0.2, 0.3)}  # not in order of names
    grid = dict(sorted(grid.items(), reverse=True))
    listed = Protocol(name="listed", grid=grid, paired=paired, options={"max_steps": 4})
    iv.evaluate("random", task=SLIDER, protocols=[listed], episodes=5, out=tmp_path / "out")
    results = Results.from_parquet(tmp_path / "out" / "results.parquet")
    filmed = film(results, tmp_path / "film", metric="return", policies={})
    captions = [item.caption for item in highlights(results, "return")]
    assert filmed.missing == ()
    assert list(filmed.media)[:3] == captions, "another score in the replay would be told"


def test_a_grid_keeps_its_order_in_the_results():
    grid = {"visual_seed": (5, 6), "dynamics_seed": (0, 1, 2)}
    protocol = Protocol(name="p", grid=grid)
    text = json.dumps(describe(protocol), sort_keys=True)
    again = protocol_from("p", json.loads(text))
    rows = [p.start(np.arange(6)) for p in (protocol, again)]
    assert {n: r.tolist() for n, r in rows[0].items()} == {
        n: r.tolist() for n, r in rows[1].items()
    }
    old = {k: v for k, v in json.loads(text).items() if k != "grid_order"}
    with pytest.raises(FileFormatError, match="order of the grid"):
        protocol_from("p", old)
    assert describe(replace(protocol, paired=True))["paired"] is True
