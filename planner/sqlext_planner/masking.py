"""Credentials in URIs, which no message, plan or log may show."""

from __future__ import annotations

import logging
import re
import traceback

_MASK = "***"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`<>]+")
#: Before the host: `s3a://KEY:SECRET@bucket`, whose secret may hold slashes, and `ftp://user:password@host`. A name
#: without a colon is no secret: the container of `abfss://container@account`.
_USER = re.compile(r"(?<=://)(?:(?<=s3://)|(?<=s3[an]://))[^:@/]+:.+(?=@)|(?<=://)[^:@/]*:[^@/]+(?=@)")
#: After a question mark: `?sig=...` of Azure, `&X-Amz-Signature=...` of S3, `;password=...` of JDBC.
_VALUE = re.compile(
    r"(?<=[?&;])(?P<name>(?:[\w.%-]*[-_.])?(?:aws)?(?:sig|signature|token|secret|password|passwd|pwd|credentials?|"
    r"(?:access|secret|account|sharedaccess|api)?[_-]?key(?:id)?)=)(?P<value>[^&;]+)",
    re.IGNORECASE,
)


def masked(text: str, *, same_length: bool = False) -> str:
    """The text with `***` in URIs in place of what proves who one is; `same_length` keeps all other characters in
    place."""
    return _URI.sub(lambda uri: _without_secrets(uri[0], same_length), text) if "://" in text else text


def _without_secrets(uri: str, same_length: bool) -> str:
    def mask(secret: str) -> str:
        return "*" * len(secret) if same_length else _MASK

    uri = _USER.sub(lambda found: mask(found[0]), uri)
    return _VALUE.sub(lambda found: found["name"] + mask(found["value"]), uri)


def without_credentials(record: logging.LogRecord) -> bool:
    """A filter for loggers: messages and tracebacks are masked."""
    record.msg, record.args = masked(record.getMessage()), ()
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        record.exc_text = masked("".join(traceback.format_exception(record.exc_info[1]))).rstrip()
    return True
