"""Names, threads and streams by number, in bounded memory however many different ones a file has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from campaign.traces._kineto_numbers import whole
from campaign.traces.timeline import LONGEST_NAME

MOST = 1 << 15  # threads, streams, devices: a device's number must fit an int16
MOST_CHARACTERS = 48 << 20  # of all names together
ALL_OTHERS = "(one of too many names)"
UNKNOWN = 255


class Interned(dict[Any, int]):
    """Things by the number in which they were first seen. Those beyond the first `MOST` are all the last one;
    `crowded` counts how often that was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.crowded = 0

    def __missing__(self, key: Any) -> int:
        if len(self) >= MOST:
            self.crowded += 1
            return MOST - 1
        self[key] = found = len(self)
        return found


class Streams:
    """Streams by the number in which they were first seen, each with the number of its device. A device may be written
    as text, a stream as 'stream 7'."""

    def __init__(self) -> None:
        self.devices, self.labels = Interned(), Interned()
        self.device_of: list[int] = []

    def __getitem__(self, key: tuple[Any, Any]) -> int:
        device, stream = key
        number = whole(device, None)
        if isinstance(stream, str):
            stream = stream.removeprefix("stream ").strip()
        place = self.devices[device if number is None else number]
        index = self.labels[place, str(stream)]
        if index == len(self.device_of):
            self.device_of.append(place)
        return index


class Names(dict[str, int]):
    """Names; one that is too long is cut (`cut` counts them), and when all together are too long, further ones become
    one (`crowded` counts them)."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = self.crowded = self._characters = 0

    def __missing__(self, key: str) -> int:
        if len(key) > LONGEST_NAME:
            self.cut += 1
            return self[key[:LONGEST_NAME]]
        self._characters += len(key) + 64
        if self._characters > MOST_CHARACTERS and key != ALL_OTHERS:
            self.crowded += 1
            return self[ALL_OTHERS]
        self[key] = found = len(self)
        return found

    def ids(self, names: list[str]) -> np.ndarray:
        return np.fromiter(map(self.__getitem__, names), np.int32, len(names))


class ByName:
    """A small number for each name, worked out once from the first thing of that name: `of(id, thing)`."""

    def __init__(self, of: Callable[[int, Any], int]) -> None:
        self._of = of
        self._known = np.empty(0, np.uint8)

    def __call__(self, ids: np.ndarray, things: list[Any]) -> np.ndarray:
        """The number of each of `things`, whose names have these ids."""
        above = int(ids.max()) + 1 - len(self._known)
        if above > 0:
            self._known = np.concatenate([self._known, np.full(2 * above + 64, UNKNOWN, np.uint8)])
        found = self._known[ids]
        places = np.flatnonzero(found == UNKNOWN)
        if len(places):
            for name, place in zip(*np.unique(ids[places], return_index=True), strict=True):
                self._known[name] = self._of(int(name), things[int(places[place])])
            found = self._known[ids]
        return found
