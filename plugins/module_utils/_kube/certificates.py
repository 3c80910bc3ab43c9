# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expiry of certificates in Secrets, such as those that charts create for webhooks and that nothing renews."""

from __future__ import annotations

import base64
import contextlib
import datetime
import typing as t

from .query import Object, query

with contextlib.suppress(ImportError):  # run_module() reports a missing package, from the module's `libraries`
    from cryptography import x509

UTC = datetime.timezone.utc
PEM = "-----BEGIN CERTIFICATE-----"


def not_after(pem: str) -> datetime.datetime:
    """When the first certificate in a PEM text expires."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    # cryptography before 42, as in Debian 12, returns naive times in UTC.
    return getattr(certificate, "not_valid_after_utc", None) or certificate.not_valid_after.replace(tzinfo=UTC)


def first_end(secret: t.Optional[Object]) -> t.Optional[datetime.datetime]:
    """When the first of a Secret's certificates expires; None without any. Charts choose their own keys."""
    texts = [base64.b64decode(value).decode(errors="replace").strip() for value in query("data.*", secret) or []]
    ends = []
    for text in texts:
        with contextlib.suppress(ValueError):  # truncated
            ends += [not_after(text)] if text.startswith(PEM) else []
    return min(ends, default=None)
