"""A place on Hydra's search path that holds the packaged options which fit any workload, and nothing else of the
packaged config: a whole folder there would offer hypotheses about a workload that the project does not have."""

from __future__ import annotations

import functools

from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf

from campaign.discovery import SHARED, shared_options

PLACE = "campaign://shared"


class SharedSource(ConfigSource):
    """The groups and options of `discovery.shared_options`, as Hydra asks for them."""

    @staticmethod
    def scheme() -> str:
        return "campaign"

    def available(self) -> bool:
        return True

    def is_group(self, config_path: str) -> bool:
        return config_path in ("", *SHARED)

    def is_config(self, config_path: str) -> bool:
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        return name in shared_options(group)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        groups = [*SHARED] if config_path == "" and results_filter != ObjectType.CONFIG else []
        names = shared_options(config_path) if results_filter != ObjectType.GROUP else ()
        return sorted([*groups, *names])

    def load_config(self, config_path: str) -> ConfigResult:
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        if (path := shared_options(group).get(name)) is None:
            raise ConfigLoadError(f"Config not found : {config_path}")
        text = path.read_text(encoding="utf-8")
        return ConfigResult(
            provider=self.provider,
            path=PLACE,
            config=OmegaConf.create(text),
            header=ConfigSource._get_header_dict(text),
        )


@functools.cache
def register() -> None:
    """Make the place known to Hydra, once in a process."""
    Plugins.instance().register(SharedSource)
