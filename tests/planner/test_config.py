"""Settings from text."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from typing import Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError


def test_settings_are_read_by_kind() -> None:
    config = Config.from_mapping(
        {
            "sqlext.planner.alwaysLower": "TRUE",
            "sqlext.exchange.targetPartitionBytes": "64m",
            "sqlext.exchange.partitions": "0",
            "sqlext.stream.stateBytes": "0",
        }
    )
    assert config.always_lower
    assert config.target_partition_bytes == 64 << 20
    assert config.partitions == 0
    shown = {setting.key: setting.default for setting in Config.described()}
    assert Config.from_mapping(shown) == Config()


def test_every_setting_is_documented() -> None:
    assert all(setting.key.startswith("sqlext.") and len(setting.doc) > 20 for setting in Config.described())


@pytest.mark.parametrize(
    ("settings", "message", "help"),
    [
        ({"sqlext.planner.alwayslowr": "true"}, "unknown setting", "did you mean 'sqlext.planner.alwaysLower'"),
        ({"sqlext.zzzzzzzzzzzzzzzzzzzz": "1"}, "unknown setting", "known settings: "),
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


NUMBERS = [item for item in fields(Config) if item.metadata["most"] is not None]


@pytest.mark.parametrize("item", NUMBERS, ids=lambda item: item.name)
def test_every_number_has_an_upper_limit(item: Field[Any]) -> None:
    key, most = item.metadata["key"], item.metadata["most"]
    assert getattr(Config.from_mapping({key: str(most)}), item.name) == most
    for text in (str(most + 1), "9" * 30, "9" * 5000, "1e3", "\u0661", "-1", "0.5", ""):
        with pytest.raises(ConfigurationError, match=f"setting '{re.escape(key)}' has the value") as caught:
            Config.from_mapping({key: text})
        assert f"at most {most}" in str(caught.value.help)
        assert len(caught.value.message) < 150


def test_all_settings_of_a_number_are_limited() -> None:
    numbers = {item.name for item in fields(Config) if item.metadata["kind"] in ("bytes", "rows", "count")}
    assert numbers == {item.name for item in NUMBERS}
