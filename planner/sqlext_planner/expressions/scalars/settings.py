"""Settings of a Spark session that change what a scalar expression means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlext_planner.errors import ConfigurationError

#: What may be set without that a value changes, or is read elsewhere: by the reader of the statement's text.
_HARMLESS = frozenset(
    """
    spark.sql.legacy.consecutiveStringLiterals.enabled spark.sql.legacy.ctePrecedencePolicy
    spark.sql.legacy.exponentLiteralAsDecimal.enabled spark.sql.legacy.inSubqueryNullability
    spark.sql.legacy.parser.havingWithoutGroupByAsWhere spark.sql.legacy.scalarSubqueryCountBugBehavior
    spark.sql.legacy.setopsPrecedence.enabled spark.sql.legacy.charVarcharAsString
    """.split()  # noqa: SIM905 - a table of words
)
#: The one value that we follow of other settings.
_FIXED = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
}
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::(\d{2}))?")


@dataclass(frozen=True)
class ScalarSettings:
    """What a translation has to know of the session.

    ansi     Spark's ANSI mode
    zone     the session's time zone: "UTC", an offset "+08:00", or a name; None: unknown, what needs it is refused
    java     the version of Spark's Java, on which texts of doubles depend; None: unknown
    by_rows  functions that Python computes row by row are allowed: for few rows at a time
    """

    ansi: bool
    zone: str | None = None
    java: int | None = None
    by_rows: bool = False

    @classmethod
    def of(cls, conf: Mapping[str, str], *, java: int | None = None) -> ScalarSettings:
        """From the settings that a session has set. Raises ConfigurationError for one that changes meanings and that is
        not followed."""
        for key, value in conf.items():
            fixed = _FIXED.get(key)
            is_legacy = key.startswith("spark.sql.legacy.") and key not in _HARMLESS
            if (fixed is None and not is_legacy) or (fixed is not None and value.lower() == fixed.lower()):
                continue
            raise ConfigurationError(
                f"{key} = {value} may change what an expression means without Spark, which is not supported",
                condition="setting-changes-meaning",
                help=f"SET {key} = {fixed}" if fixed is not None else f"RESET {key}",
            )
        zone = conf.get("spark.sql.session.timeZone")
        ansi = conf.get("spark.sql.ansi.enabled", "true").lower() == "true"
        return cls(ansi, None if zone is None else known_zone(zone), java, by_rows=True)


def known_zone(name: str) -> str | None:
    """The name of a time zone as the operators take it; None for one whose offsets may be others in Java."""
    if name in ("UTC", "GMT", "Z", "Etc/UTC"):
        return "UTC"
    match = _OFFSET.fullmatch(name)
    if match is not None:
        hours, minutes = int(match[2]), int(match[3] or 0)
        return f"{match[1]}{hours:02d}:{minutes:02d}" if (hours, minutes) <= (18, 0) and minutes < 60 else None
    from zoneinfo import available_timezones

    return name if "/" in name and name in available_timezones() else None
