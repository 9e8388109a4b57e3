"""Where decisions are mirrored, as one text: `mlflow` (the project's own store), `none`, or an MLflow server's address.

An address has no user, password or query in it: it stands in commands, in the ledger and in pages. Whoever the server
asks for a password sets MLflow's own variables (MLFLOW_TRACKING_USERNAME, ..._PASSWORD, ..._TOKEN).
"""

from __future__ import annotations

from campaign.errors import BadInput, UnknownName

EMBEDDED, NONE = "mlflow", "none"
EXAMPLE = "tracking.uri=http://HOST:PORT"
SECRETS = "export MLFLOW_TRACKING_USERNAME=... MLFLOW_TRACKING_PASSWORD=... (or MLFLOW_TRACKING_TOKEN=...)"


def destination_of(value: object) -> str:
    """The destination that a config's `tracking` names: `mlflow`, `none`, an address, or a mapping with `uri` (null:
    the project's own store). Raises BadInput, UnknownName for another key; no secret is repeated in either."""
    if isinstance(value, dict):
        for name in value:
            if name != "uri":
                raise UnknownName("config key", f"tracking.{name}", ["tracking.uri"], remedy=EXAMPLE)
        uri = value.get("uri")
        return EMBEDDED if uri is None or uri == "" else address(uri)
    if value in (EMBEDDED, NONE):
        return str(value)
    if isinstance(value, str) and "://" in value:
        return address(value)
    raise BadInput(
        f"tracking = {value!r}: must be one of {EMBEDDED}, {NONE}, or name a server ({EXAMPLE})", remedy="tracking=none"
    )


def address(value: object) -> str:
    """An MLflow server's address without a slash at its end. Raises BadInput."""
    from urllib.parse import urlsplit

    rule = "must be an MLflow server's address, http://HOST:PORT or https://HOST"
    if not isinstance(value, str) or any(sign.isspace() or not sign.isprintable() for sign in value):
        raise BadInput(f"tracking.uri {rule}", remedy=EXAMPLE)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"tracking.uri {rule}; its host or port cannot be read", remedy=EXAMPLE) from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        clean = f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "") + parts.path
        raise BadInput(
            "tracking.uri holds a user, a password or a query, and would be written into the ledger with the command",
            remedy=f"{SECRETS}, then tracking.uri={clean}",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"tracking.uri = {value!r}: {rule}", remedy=EXAMPLE)
    return value.rstrip("/")


def is_server(destination: str) -> bool:
    """Whether a destination is an address."""
    return destination not in (EMBEDDED, NONE)


def again(campaign: str, destination: str = EMBEDDED) -> str:
    """The command that completes the mirror of a campaign there."""
    named = "" if campaign == "default" else f" --campaign {campaign}"
    return f"campaign sync{named}" + (f" --uri {destination}" if is_server(destination) else "")
