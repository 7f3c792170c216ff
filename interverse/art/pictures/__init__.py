"""Pictures behind and below the robots: painted ones, a user's own, and moving ones."""

from interverse.art.pictures.difficulty import (
    COLOR_MODES,
    LEVELS,
    SCALES,
    VIDEO_MODES,
    VIDEO_PLACES,
    Difficulty,
    difficulty,
)
from interverse.art.pictures.folder import Folder, folder, folder_state, images
from interverse.art.pictures.procedural import (
    HELD_OUT_KINDS,
    Picture,
    PictureSet,
    Procedural,
    Shelf,
    Videos,
    procedural_backgrounds,
    procedural_floors,
    shelf,
)
from interverse.art.pictures.video import (
    Drifting,
    FrameVideos,
    first,
    folder_videos,
    procedural_videos,
)

__all__ = [
    "COLOR_MODES",
    "HELD_OUT_KINDS",
    "LEVELS",
    "SCALES",
    "VIDEO_MODES",
    "VIDEO_PLACES",
    "Difficulty",
    "Drifting",
    "Folder",
    "FrameVideos",
    "Picture",
    "PictureSet",
    "Procedural",
    "Shelf",
    "Videos",
    "difficulty",
    "first",
    "folder",
    "folder_state",
    "folder_videos",
    "images",
    "procedural_backgrounds",
    "procedural_floors",
    "procedural_videos",
    "shelf",
]
