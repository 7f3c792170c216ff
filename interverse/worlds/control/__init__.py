"""Control remastered: the suite's tasks under looks and dynamics that can be changed."""
