"""Large raw data beside the ledger, in files named by the SHA-256 of their content."""

from __future__ import annotations

import os
from pathlib import Path

from campaign.errors import BadInput, LedgerDamaged
from campaign.ledger.disk import sync_folder, unusable

RAW = "raw"
_SUFFIX_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.")


class RawDamaged(LedgerDamaged):
    """A raw file that a ledger line names is missing, or its content is no longer what its name says."""

    def __init__(self, path: str, line: int, raw: Path, why: str) -> None:
        super().__init__(path, line, f"its raw file {raw} {why}")
        self.raw = raw
        self.remedy = f"restore {raw} from a copy; without it this decision cannot be replayed, the others can"


class RawFiles:
    """The `raw/` folder of one campaign."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, relative: str) -> Path:
        """The file that the ledger calls `relative`. Raises BadInput for a path that leaves the campaign's folder."""
        parts = Path(relative).parts
        if not parts or Path(relative).is_absolute() or ".." in parts:
            raise BadInput(f"{relative!r} is not a path inside {self.folder}")
        return self.folder / relative

    def keep(self, data: bytes, suffix: str) -> str:
        """Write `data` durably and return its path beside the ledger, `raw/<sha256><suffix>`. Writing the same bytes
        again changes nothing. Raises CampaignError when the disk refuses."""
        if set(suffix) - _SUFFIX_CHARACTERS or (suffix and not suffix.startswith(".")) or ".." in suffix:
            raise BadInput(f"raw file suffix {suffix!r}: a dot, then lower-case letters, digits and dots")
        relative = f"{RAW}/{_sha256(data)}{suffix}"
        target = self.folder / relative
        if target.is_file() and target.read_bytes() == data:
            return relative
        passing = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(passing, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(passing, target)
            sync_folder(target.parent)
        except OSError as error:
            passing.unlink(missing_ok=True)
            raise unusable(target, error) from error
        return relative

    def load(self, relative: str, ledger: str, line: int) -> bytes:
        """The bytes of a raw file, checked against its name. Raises RawDamaged naming the line and the file."""
        path = self.path(relative)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise RawDamaged(ledger, line, path, "is missing") from None
        except OSError as error:
            raise RawDamaged(ledger, line, path, f"cannot be read: {error.strerror or error}") from error
        found = _sha256(data)
        if found != path.name.partition(".")[0]:
            raise RawDamaged(ledger, line, path, f"was altered: its SHA-256 is now {found}")
        return data


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # here, so that a listing does not load OpenSSL

    return sha256(data).hexdigest()
