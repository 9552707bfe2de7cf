"""What the calls of layers around the present one have settled, for each thread."""

from __future__ import annotations

import threading
from typing import Any


class CallContext(threading.local):
    """`training` as the outer calls have it, and the layer that is being called or built."""

    training: bool | None = None
    caller: Any = None


context = CallContext()
