"""PPO beside thousands of TriFinger worlds: worlds, networks and buffers on one device.

`train.train_on_device` is what `interverse train` of a TriFinger task runs. PPO is our own small
one: at this scale it is the few hundred lines of `ppo.py`, needs no wrapper around the worlds, and
learned 776,000 steps a second on one H200 (`results/bench_h200.json`).
"""
