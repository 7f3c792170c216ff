"""tutorial/slider-v1: one box on a table, pushed towards a goal. Copy this folder to start a world.

`variables` declares what exists and what causes what, `scene` builds the model, `dynamics` holds
the pure array functions, `world` puts them together. Imports inside the folder are relative, so a
copy works wherever it stands.
"""
