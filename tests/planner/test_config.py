"""Settings from text."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError


def test_settings_are_read_by_kind() -> None:
    config = Config.from_mapping(
        {
            "sqlext.planner.alwaysLower": "TRUE",
            "sqlext.exchange.targetPartitionBytes": "64m",
            "sqlext.exchange.partitions": "0",
        }
    )
    assert config.always_lower
    assert config.target_partition_bytes == 64 << 20
    assert config.partitions == 0
    assert Config.from_mapping(config.as_mapping()) == config


def test_every_setting_is_documented() -> None:
    assert all(key.startswith("sqlext.") and len(doc) > 20 for key, _, doc in Config.documentation())


@pytest.mark.parametrize(
    ("settings", "message", "help"),
    [
        ({"sqlext.planner.alwayslowr": "true"}, "unknown setting", "did you mean 'sqlext.planner.alwaysLower'"),
        ({"sqlext.x": "1"}, "unknown setting", "known settings: "),
        ({"sqlext.planner.alwaysLower": "yes"}, "has the value 'yes'", "true or false"),
        ({"sqlext.exchange.maxPieceRows": "0"}, "has the value '0'", "a whole number >= 1"),
        ({"sqlext.exchange.maxPieceRows": "-5"}, "has the value '-5'", "a whole number >= 1"),
        ({"sqlext.lastJoin.strategy": "asof"}, "has the value 'asof'", "auto|exchange|reduce|pairs"),
        ({"sqlext.exchange.blockBytes": "4 x"}, "has the value '4 x'", "128m"),
    ],
)
def test_bad_settings_say_what_to_do(settings: dict[str, str], message: str, help: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        Config.from_mapping(settings)
    assert help in (caught.value.help or "")
