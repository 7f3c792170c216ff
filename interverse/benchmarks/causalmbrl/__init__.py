"""CausalMBRL: its tables and figures, made again."""
