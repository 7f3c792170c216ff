"""What a notebook shows of results, variables, graphs, episodes and environments."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import interverse as iv

SLIDER = "tutorial/slider-v1"


@pytest.fixture(scope="module")
def env():
    made = iv.make(SLIDER)
    made.reset(seed=3)
    yield made
    made.close()


def shown(thing) -> str:
    """Returns the text of what a notebook shows; its tags close in order."""
    parts, stack = [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            stack.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            assert stack.pop() == tag

        def handle_data(self, data):
            parts.append(data)

    Reader().feed(thing._repr_html_())
    assert not stack
    return " ".join(parts)


def test_variables_show_their_spaces(env):
    text = shown(env.variables)
    assert "box/mass" in text
    assert "0.3 to 0.6" in text
    assert "0.6 to 0.9" in text


def test_a_graph_shows_what_follows_from_what(env):
    assert f"{len(env.graph)} variables, {env.graph.number_of_edges()} edges" in shown(env.graph)


def test_an_episode_shows_what_was_set():
    episode = iv.rollout(SLIDER, "random", seed=0, do={"gravity": -5.0}, max_steps=4)
    text = shown(episode)
    assert '{"gravity": -5.0}' in text
    assert "4 steps" in text
    assert "<polyline" in episode._repr_html_()


def test_results_and_their_table_show_one_primary_score():
    results = iv.evaluate("random", task=SLIDER, protocols="P0", episodes=2, max_steps=3)
    assert "P0" in shown(results)
    assert "return" in shown(results)
    assert "return" in shown(results.table())


def test_costs_show_the_verdict_first():
    found = iv.attribute("random", SLIDER, ["push", "box/color"], episodes=3, max_steps=5, pairs=0)
    assert shown(found).startswith(found.verdict())


def test_an_environment_says_where_it_stands(env):
    assert repr(env.unwrapped) == str(env.unwrapped)
    assert "tutorial/slider-v1: seed 3, episode 0, step 0" in repr(env.unwrapped)
    assert "not reset" in repr(iv.make(SLIDER).unwrapped)
