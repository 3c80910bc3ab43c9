# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A detached signature by a key of the site, as `openssl dgst -sha256 -verify` takes it."""

from __future__ import annotations

import contextlib
import os
import stat

from ..module_utils._common.result import FabricError

with contextlib.suppress(ImportError):  # the action says what is missing, by its `libraries`
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

MAKE = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out report.key"


def sign(path: str, data: bytes) -> bytes:
    """The signature of the data with the private key in this file.

    A group may read the key, such as the runners of a team; others may not. Raises FabricError if it can't be used.
    """
    try:
        with open(path, "rb") as file:
            mode, text = stat.S_IMODE(os.fstat(file.fileno()).st_mode), file.read()
    except OSError as error:
        raise unusable(path, error.strerror or str(error), f"Make a key: {MAKE}") from error
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise unusable(
            path, f"its mode is {mode:04o}: others may use it, or a group may replace it", f"Run chmod 600 {path}"
        )
    try:
        key = load_pem_private_key(text, password=None)
    except (TypeError, ValueError) as error:  # a TypeError: it has a passphrase
        seen = "it has a passphrase" if isinstance(error, TypeError) else "it is not a private key in PEM"
        raise unusable(path, seen, f"Make a key without a passphrase: {MAKE}") from error
    if isinstance(key, EllipticCurvePrivateKey):
        return key.sign(data, ECDSA(SHA256()))
    if isinstance(key, RSAPrivateKey):
        return key.sign(data, PKCS1v15(), SHA256())
    raise unusable(path, "its kind is neither RSA nor EC", f"Make a key that openssl dgst can verify: {MAKE}")


def unusable(path: str, seen: str, next_step: str) -> FabricError:
    what = "The report could not be signed."
    return FabricError(what, f"fabric_report_key, {path}", seen, next_step, code="unusable-file")
