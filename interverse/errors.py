"""The errors a user can catch; each says what was given, what is allowed and how to mend it."""

from interverse.core.errors import (
    ActionError,
    FileFormatError,
    InterventionError,
    InterverseError,
    InvalidValueError,
    MissingExtraError,
    RefusedStartsWarning,
    RenderError,
    ResetNeededError,
    StorageError,
    UnknownNameError,
)

__all__ = [
    "ActionError",
    "FileFormatError",
    "InterventionError",
    "InterverseError",
    "InvalidValueError",
    "MissingExtraError",
    "RefusedStartsWarning",
    "RenderError",
    "ResetNeededError",
    "StorageError",
    "UnknownNameError",
]
