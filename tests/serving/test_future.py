"""Rows whose time is to come: one of the year 9999 lets no other row go."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlext_planner.errors import DataError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.serving.deployment import Deployment
from tests.serving.servers import ZONE, spent

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FAR = datetime(9999, 1, 1, tzinfo=UTC)


def made(future: str) -> Deployment:
    return spent(settings=ServingSettings(True, ZONE, future))


def row(time: datetime) -> dict[str, Any]:
    return {"user_id": 1, "ts": time, "price": 1}


def filled(future: str) -> Deployment:
    """Many rows, so that old ones would go, and one that is to come."""
    deployment = made(future)
    deployment.push("orders", [row(NOON)] * 100)
    deployment.push("orders", [row(FAR)])
    for _ in range(40):
        deployment.push("orders", [row(NOON)])
    return deployment


@pytest.mark.parametrize(("future", "kept"), [("keep", 141), ("drop", 140)])
def test_a_row_that_is_to_come_lets_no_row_go(future: str, kept: int) -> None:
    deployment = filled(future)
    assert deployment.answer(row(NOON))["n"] == 141
    assert deployment.answer(row(FAR))["n"] == kept - 139
    assert deployment.kept_rows == kept
    deployment.push("orders", [row(datetime(2026, 5, 2, 12, tzinfo=UTC))] * 200)
    for _ in range(40):
        deployment.push("orders", [row(NOON)])
    assert deployment.kept_rows < 300, "rows of the day before have gone"


def test_a_push_with_such_a_row_is_refused() -> None:
    with pytest.raises(
        DataError, match="1 rows of 'orders' have a time that is more than 3,600 seconds after now"
    ) as caught:
        filled("fail")
    assert caught.value.condition == "future-rows"


def test_the_choice_is_part_of_a_folder(tmp_path: Path) -> None:
    deployment = spent(settings=ServingSettings(True, ZONE, "drop", 60))
    deployment.save(tmp_path)
    opened = Deployment.open(tmp_path)
    assert opened.settings == deployment.settings
    assert opened.saved.fingerprint == deployment.saved.fingerprint != spent().saved.fingerprint
