"""The window of `render_mode="human"`."""

from __future__ import annotations

import os
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import RenderError, explain, missing_extra


@final
class RenderWindow:
    """A window on the screen that shows pictures at a steady rate.

    Args:
        title: what its bar says.
        fps: how many pictures it shows a second; `show` waits for that long.
    """

    def __init__(self, title: str, fps: int) -> None:
        self._title, self._fps = title, fps
        self._screen: Any = None

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Shows a picture (rows, columns, 3); a person may close the window at any time."""
        if self._screen is None:
            self._open(picture.shape)
        pygame = _pygame()
        if not pygame.display.get_init():
            return
        self._screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(self._fps)
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()

    def _open(self, shape: tuple[int, ...]) -> None:
        pygame = _pygame()
        try:
            pygame.display.init()
            self._screen = pygame.display.set_mode((shape[1], shape[0]))
        except pygame.error as error:
            raise RenderError(
                explain(
                    f"no window can be opened ({error})",
                    fix="Use render_mode='rgb_array', or `interverse view` with a browser",
                )
            ) from error
        pygame.display.set_caption(self._title)
        self._clock = pygame.time.Clock()

    def close(self) -> None:
        """Closes the window if it is open."""
        if self._screen is not None:
            _pygame().display.quit()


def _pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it greets on standard output
    try:
        import pygame
    except ImportError:
        raise missing_extra("pygame", "view") from None
    return pygame
