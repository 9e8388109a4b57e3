"""A callable made ready to travel to a trial's process, and why one cannot: which object, and what to do instead."""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import inspect
import pickletools
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import units
from campaign.callables import Setup, digest
from campaign.errors import BadInput

LARGEST_BYTES = 256 << 20
DEEPEST = 6  # references followed from the callable to what does not pickle
BUILD_INSIDE = "campaign.Setup(make): make() builds what the step needs in the trial's process and returns the step"


@dataclass(frozen=True)
class Parcel:
    """A pickled callable. `sources` maps the modules of the caller's own that it refers to by name (they are imported
    again in the trial) to the digests of their files; `setup` says that it is a `Setup`."""

    name: str
    pickled: bytes
    setup: bool
    sources: dict[str, str]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.pickled).hexdigest()


def pack(given: object, name: str) -> Parcel:
    """`given`, a callable that takes nothing or a `Setup`, as a parcel. Raises BadInput naming what is wrong."""
    import cloudpickle

    step = given.make if isinstance(given, Setup) else given
    _check(step, name, setup=isinstance(given, Setup))
    with ExitStack() as stack:
        for module in _unimportable(step):
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            pickled = cloudpickle.dumps(given)
        except Exception as error:
            path, culprit = _culprit(step, cloudpickle.dumps)
            where = f"its {path} is {_told(culprit)}" if path else f"it is {_told(culprit)}"
            raise BadInput(
                f"{name} cannot travel to a fresh process: {where} ({type(error).__name__}: {_short(error)})",
                remedy=BUILD_INSIDE,
            ) from error
    if len(pickled) > LARGEST_BYTES:
        raise BadInput(
            f"{name} takes {units.size(len(pickled))} with it to each fresh process; the most is"
            f" {units.size(LARGEST_BYTES)}",
            remedy=BUILD_INSIDE,
        )
    return Parcel(name, pickled, isinstance(given, Setup), _sources(pickled))


def _check(step: object, name: str, *, setup: bool) -> None:
    what = f"the make of {name}" if setup else name
    if not callable(step):
        raise BadInput(
            f"{what} is {_told(step)}: it must be a callable that takes nothing and does one step, or campaign.Setup",
            remedy="campaign.measure(lambda: step(model, batch), ...)",
        )
    if not setup and any(test(step) for test in (inspect.iscoroutinefunction, inspect.isgeneratorfunction)):
        kind = "generator" if inspect.isgeneratorfunction(step) else "coroutine"
        raise BadInput(
            f"{what} is a {kind} function: calling it does no work yet",
            remedy="a function that does the whole step before it returns",
        )
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):
        return  # of a builtin nothing is known
    try:
        signature.bind()
    except TypeError as error:
        raise BadInput(
            f"{what} is called without arguments, and it wants some ({error}): {signature}",
            remedy="functools.partial(step, model, batch), or lambda: step(model, batch)",
        ) from None


def _unimportable(step: object) -> list[types.ModuleType]:
    """The modules that define `step` and that a fresh process with the same path would not find: those of a test
    runner's own making, for example. What they define travels by value."""
    found = {}
    for one in _layers(step):
        for name in (getattr(one, "__module__", None), type(one).__module__):
            module = sys.modules.get(name) if isinstance(name, str) else None
            if module is not None and name not in ("__main__", "builtins") and not _importable(module.__name__):
                found[module.__name__] = module
    return list(found.values())


def _layers(step: object) -> Iterator[object]:
    """`step`, and what it wraps: the function of a partial or of a bound method, and what that is bound to."""
    while step is not None:
        yield step
        if isinstance(step, types.MethodType):
            yield step.__self__
        step = getattr(step, "func", None) or getattr(step, "__func__", None) or getattr(step, "__wrapped__", None)


@functools.cache
def _importable(name: str) -> bool:
    path: Any = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        full = ".".join(parts[:depth])
        spec = next((spec for finder in sys.meta_path if (spec := _found(finder, full, path)) is not None), None)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return True


def _found(finder: Any, name: str, path: Any) -> importlib.machinery.ModuleSpec | None:
    try:
        return finder.find_spec(name, path)  # type: ignore[no-any-return]
    except (AttributeError, ImportError, ValueError):
        return None


def _culprit(value: object, dumps: Callable[[object], bytes]) -> tuple[str, object]:
    """The path to the innermost object that does not pickle, and that object; an empty path for `value` itself."""
    path = ""
    for _ in range(DEEPEST):
        for name, inner in _inside(value):
            if not _pickles(inner, dumps):
                path, value = (f"{path}{name}" if path or not name.startswith(".") else name.lstrip(".")), inner
                break
        else:
            break
    return path, value


def _pickles(value: object, dumps: Callable[[object], bytes]) -> bool:
    try:
        dumps(value)
        return True
    except Exception:
        return False


def _inside(value: object) -> Iterator[tuple[str, object]]:
    """What `value` refers to, each by the words that lead to it."""
    if isinstance(value, functools.partial):
        yield from ((f"argument {place + 1}", inner) for place, inner in enumerate(value.args))
        yield from ((f"argument {name}", inner) for name, inner in value.keywords.items())
        yield "function", value.func
    elif isinstance(value, types.MethodType):
        yield f"{type(value.__self__).__name__} object", value.__self__
        yield "function", value.__func__
    elif isinstance(value, types.FunctionType):
        yield from ((f"variable {name}", inner) for name, inner in _variables(value).items())
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{place}]", inner) for place, inner in enumerate(value))
    elif not isinstance(value, type | types.ModuleType):
        yield from ((f".{name}", inner) for name, inner in getattr(value, "__dict__", {}).items())


def _variables(function: types.FunctionType) -> dict[str, object]:
    """What a function closes over, the globals that it names, and its defaults."""
    closed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closed[name] = cell.cell_contents
        except ValueError:
            continue  # assigned later
    names = set(function.__code__.co_names)
    for constant in function.__code__.co_consts:
        names |= set(constant.co_names) if isinstance(constant, types.CodeType) else set()
    named = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    defaults = {f"default {place + 1}": inner for place, inner in enumerate(function.__defaults__ or ())}
    return {**closed, **named, **defaults, **(function.__kwdefaults__ or {})}


def _sources(pickled: bytes) -> dict[str, str]:
    """The caller's own modules that a pickle refers to, with the digests of their files."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found = {}
    for name in _modules(pickled):
        file = getattr(sys.modules.get(name), "__file__", None)
        if not file or name.split(".")[0] in ("campaign", "cloudpickle"):
            continue
        path = Path(file).resolve()
        if not any(path.is_relative_to(folder) for folder in installed):
            found[name] = digest(path)
    return dict(sorted(found.items()))


def _modules(pickled: bytes) -> set[str]:
    """The modules that a pickle of protocol 5 imports: those of its globals, and those that cloudpickle's `subimport`
    is called with. Nothing is unpickled for it."""
    memo: list[str] = []
    texts = [""] * 2  # the last two that were pushed
    top, module_follows = "", False
    found = set()
    for operation, argument, _ in pickletools.genops(pickled):
        if operation.name in ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINGET", "LONG_BINGET"):
            top = memo[argument] if isinstance(argument, int) else str(argument)
            texts = [texts[-1], top]
            if module_follows:
                found.add(top)
                module_follows = False
        elif operation.name == "MEMOIZE":
            memo.append(top)
        elif operation.name == "STACK_GLOBAL":
            found.add(texts[0])
            module_follows, top = texts[1] == "subimport", ""
        elif operation.name not in ("PROTO", "FRAME"):
            top = ""
    return found


def _told(value: object) -> str:
    """'an open file (log.txt)', 'a generator', 'a lock', 'a value of type Foo'."""
    name = type(value).__name__
    if hasattr(value, "fileno") and hasattr(value, "close"):
        return f"an open file or connection ({getattr(value, 'name', name)!s})"
    if inspect.isgenerator(value):
        return f"a generator ({value.__name__})"
    if name in ("lock", "RLock", "_thread.lock", "Condition", "Event", "Semaphore"):
        return f"a lock ({name})"
    return f"of type {type(value).__module__}.{name}" if type(value).__module__ != "builtins" else f"of type {name}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
