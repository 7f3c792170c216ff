"""Published benchmarks, run again from one command each."""
