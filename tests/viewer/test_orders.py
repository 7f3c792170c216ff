"""Orders: in turn, the last of a key alone, and not before it has rested."""

from __future__ import annotations

import threading
import time

from interverse.viewer.desk import Orders


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
