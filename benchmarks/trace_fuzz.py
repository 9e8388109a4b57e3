"""Damage real and made profiles at random for some minutes: each must be read, or refused by an error that is meant.

Every file of `--files` (and a few small ones made here, plain and gzip) is changed in one of these ways: bytes flipped,
stretches cut out, doubled, swapped or overwritten with what breaks JSON, SQL and CSV; the end cut off; a gzip unpacked,
damaged and packed again. A child process reads each with `open_profile` and diagnoses it. Anything but an answer or a
CampaignError with a remedy is a failure, and so is a child that takes longer than `--seconds`, dies, or whose memory
grows past `--mib`. Failing inputs are kept in `--keep`.

    python benchmarks/trace_fuzz.py                          # 10 minutes, files made here
    python benchmarks/trace_fuzz.py --files ../shared/data/traces --minutes 10
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.synthetic_trace import write

LARGEST = 4 << 20  # bytes of content that are worth damaging: all readers stream
NASTY = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b"},{", b",", b"\0", b"\x1f", b"\xff\xfe", b"NaN", b"-Infinity", b"1e999",
    b"9" * 40, b"-1", b'"ts":', b'"dur":-5,', b'"traceEvents":[', b"\\ud800", b"null", b"\r\n", b';', b"n/a", b"-nan",
    b"[" * 3000, b'{"a":' * 3000, b" " * 5000, b"x" * 5000, b"SQLite format 3\0", b"; DROP TABLE",
)  # fmt: skip


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content with one to six faults."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if not found:
            break
        first = int(len(found) * rng.random() ** rng.choice((1, 1, 3)))  # headers are small and matter
        end = min(len(found), first + rng.choice((1, 2, 8, 100, 4000)))
        match rng.randrange(6):
            case 0:
                found[first] ^= 1 << rng.randrange(8)
            case 1:
                del found[first:end]
            case 2:
                found[first:first] = found[first:end]
            case 3:
                found[first:first] = rng.choice(NASTY)
            case 4:
                by = rng.choice(NASTY)[: max(1, end - first)]
                found[first : first + len(by)] = by
            case 5:
                found[first:end] = bytes(rng.randrange(256) for _ in range(end - first))
    if rng.random() < 0.2:
        del found[int(len(found) * rng.random()) :]
    return bytes(found)


def mutated(rng: random.Random, content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b") and rng.random() < 0.7:
        return gzip.compress(damaged(rng, gzip.decompress(content)), 1)
    return damaged(rng, content)


def serve(link: Connection, mib: int) -> None:
    """Read each file that comes over the link, and say what became of it."""
    from campaign.diagnosis.question import Question
    from campaign.diagnosis.whole import diagnose
    from campaign.errors import CampaignError
    from campaign.traces import KernelReport, open_profile

    resource.setrlimit(resource.RLIMIT_AS, (4 * mib << 20, 4 * mib << 20))
    while path := link.recv():
        try:
            found = open_profile(Path(path))
            if isinstance(found, KernelReport):
                diagnose(None, [found], Question())
            else:
                diagnose(found, [], Question())
                found.close()
            said, failed = "read", ""
        except CampaignError as error:
            said, failed = "refused", "" if error.remedy else f"no remedy: {error}"
        except BaseException:
            said, failed = "failed", traceback.format_exc()
        link.send((said, failed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))


class Reader:
    """The child process, started again when it hung, died or grew."""

    def __init__(self, mib: int, seconds: float) -> None:
        self.mib, self.seconds = mib, seconds
        self.start()

    def start(self) -> None:
        context = get_context("spawn")
        self.link, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.mib), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.link.close()

    def read(self, path: Path) -> tuple[str, str]:
        """What became of the file, and why that is a failure, if it is."""
        self.link.send(str(path))
        try:
            if not self.link.poll(self.seconds):
                return self.again("hung", f"not done after {self.seconds:.0f} s")
            said, failed, peak = self.link.recv()
        except EOFError:
            return self.again("died", "the process died")
        if peak > self.mib:
            return self.again("grew", f"{peak} MiB")
        return said, failed

    def again(self, said: str, why: str) -> tuple[str, str]:
        self.stop()
        self.start()
        return said, why


def made(folder: Path) -> list[Path]:
    """Small traces of our own: all categories, plain, gzip and without a device."""
    plain = folder / "made.json"
    write(plain, 300)
    packed = folder / "made.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    host = folder / "host.json"
    operators = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{n % 7}", "pid": 1, "tid": n % 2, "ts": n, "dur": 9 - n % 9}
        for n in range(300)
    ]
    host.write_text(json.dumps(operators))
    return [plain, packed, host]


def content_of(path: Path) -> bytes | None:
    content = path.read_bytes()
    size = len(gzip.decompress(content)) if content.startswith(b"\x1f\x8b") else len(content)
    return content if size <= LARGEST else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--files", type=Path, help="a folder of real profiles; those over 4 MiB of content are left out"
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--mib", type=int, default=500, help="a child's peak memory, over all files that it has read")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "campaign-fuzz-failures")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="campaign-fuzz-") as name:
        folder = Path(name)
        sources = made(folder)
        if given.files:
            sources += sorted(path for path in given.files.iterdir() if path.is_file() and path.suffix != ".tsv")
        contents = {path.name: content for path in sources if (content := content_of(path)) is not None}
        reader = Reader(given.mib, given.seconds)
        said: Counter[tuple[str, str]] = Counter()
        failures = 0
        until = time.monotonic() + 60 * given.minutes
        shown = time.monotonic()
        while time.monotonic() < until:
            source = rng.choice(list(contents))
            path = folder / f"damaged-{source}"
            path.write_bytes(mutated(rng, contents[source]))
            what, why = reader.read(path)
            said[Path(source.removesuffix(".gz")).suffix, what] += 1
            if why:
                failures += 1
                given.keep.mkdir(parents=True, exist_ok=True)
                kept = given.keep / f"{given.seed}-{sum(said.values())}-{source}"
                shutil.copy(path, kept)
                print(f"{kept}: {what}\n{why}", file=sys.stderr)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                print(f"{sum(said.values()):,} files, {failures} failures", file=sys.stderr)
        reader.stop()
    count = sum(said.values())
    print(f"{count:,} damaged files made of {len(contents)} in {given.minutes:g} minutes, seed {given.seed}\n")
    print("| format | read | refused | failed |\n|---|---|---|---|")
    for suffix in sorted({suffix for suffix, _ in said}):
        bad = sum(count for (one, what), count in said.items() if one == suffix and what not in ("read", "refused"))
        print(f"| {suffix} | {said[suffix, 'read']:,} | {said[suffix, 'refused']:,} | {bad:,} |")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
