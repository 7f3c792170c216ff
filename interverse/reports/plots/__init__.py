"""Plots: one file each, one function of the tidy table; `interverse.reports.PLOTS` lists them."""
