import base64
import datetime

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import certificates
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate


@pytest.mark.parametrize("year", [2027, 2051])
def test_not_after(year):
    end = datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc)
    assert certificates.not_after(certificate(end).decode()) == end


def test_the_first_certificate_that_ends_counts_whatever_its_key():
    early, late = (datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc) for year in (2027, 2051))
    texts = [base64.b64encode(certificate(end)).decode() for end in (late, early)]
    assert certificates.first_end({"data": {"ca": texts[0], "cert": texts[1], "key": "aGVsbG8="}}) == early
    assert certificates.first_end({"data": {"key": "/////w=="}}) is None
    assert certificates.first_end({}) is certificates.first_end(None) is None


def test_what_is_cut_off_is_no_certificate():
    cut = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB").decode()
    assert certificates.first_end({"data": {"cert": cut}}) is None
