"""The bar that a notebook with ipywidgets shows: tqdm's, in one place for all epochs of a training."""

from __future__ import annotations

from typing import Any, cast

from IPython.display import display
from tqdm.notebook import tqdm


class NotebookBar(tqdm):  # type: ignore[misc] # tqdm has no types
    """A bar of widgets. Closed it is taken away, so that a saved notebook holds no widget that is gone; broken off it stays."""

    def __init__(self, **options: Any) -> None:
        super().__init__(display=False, **options)
        self._place: Any = cast(Any, display)(self.container, display_id=True)
        self.displayed = True

    def close(self) -> None:
        """The end of the bar."""
        super().close()
        if not self.leave and self._place is not None:
            self.container.close()
            self._place.update({}, raw=True)
            self._place = None
