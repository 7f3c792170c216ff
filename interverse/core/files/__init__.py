"""Files: one way to write each kind, whole or not at all, and one way to read it, within limits.

Every reader refuses what is larger, deeper or of another type than its caller expects before any
memory is taken for it, raises `FileFormatError` for what is corrupt, and runs no code of a file.
"""
