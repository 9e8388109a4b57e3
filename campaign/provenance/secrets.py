"""Names of files whose content must not travel in a patch, whatever git tracks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

PATTERNS = (
    ".env",
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials*",
    "*credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".htpasswd",
)
FOLDERS = (".ssh", ".aws", ".gnupg", ".kube")


def looks_secret(path: str) -> bool:
    """Whether the name of `path` (with / between folders), or a folder in it, is one that usually holds secrets."""
    parts = [part.lower() for part in PurePosixPath(path).parts]
    return any(part in FOLDERS for part in parts[:-1]) or any(fnmatchcase(parts[-1], one) for one in PATTERNS)
