# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When certificates of a host end, read without a library."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.certificates import expired_certificates, not_after
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate

UTC = datetime.timezone.utc
# From 2050 on, the form of the time is another one.
ENDS = [datetime.datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC), datetime.datetime(2051, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("end", ENDS)
def test_not_after(end):
    text = "-----BEGIN RSA PRIVATE KEY-----\nxyz\n-----END RSA PRIVATE KEY-----\n" + certificate(end).decode()
    assert not_after(text) == end


@pytest.mark.parametrize("text", ["", "certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"])
def test_what_is_no_certificate(text):
    with pytest.raises(ValueError, match=r"no certificate|cut off"):
        not_after(text)


def test_expired_certificates(tmp_path):
    files = [tmp_path / "old.crt", tmp_path / "new.crt", tmp_path / "none.crt"]
    for path, end in zip(files, ENDS):
        path.write_bytes(certificate(end))
    now = datetime.datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    assert expired_certificates(list(map(str, files)), now) == [f"{files[0]} on 2026-03-01"]
