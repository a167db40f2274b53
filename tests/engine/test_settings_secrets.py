"""What among flags is a secret: refused in variants by the same rule by which it is masked in clusters."""

import pytest

from benchctl.engine.settings import check_flag, secret_property, without_secrets
from benchctl.errors import UsageError


@pytest.mark.parametrize(
    ("flag", "shown"),
    [
        ("-Xmx1g", "-Xmx1g"),
        ("-Djava.io.tmpdir=/tmp", "-Djava.io.tmpdir=/tmp"),
        ("-Des.secret_thing=hunter2=x", "-Des.secret_thing={secret}"),
        ("-Dtrust.PASSWORD=", "-Dtrust.PASSWORD={secret}"),
        ("-Dauth.token=a.b", "-Dauth.token={secret}"),
        ("-Dmail.pass=x", "-Dmail.pass={secret}"),
        ("-XX:OnError=/bin/tell -Da=1 -Dpassword=1 now", "-XX:OnError=/bin/tell -Da=1 -Dpassword={secret}"),
        ("-Dindex.tokenizer=standard", "-Dindex.tokenizer=standard"),
        ("-Dbypass.cache=1", "-Dbypass.cache=1"),
    ],
)
def test_flags_are_shown_without_secrets(flag: str, shown: str):
    assert without_secrets(flag) == shown


@pytest.mark.parametrize(
    "flag",
    ["-Da.passphrase=x", "-Da.api-key=x", "-Da.private_key=x", "-Da.accessKey=x", "-Dcredentials=x\ny"],
)
def test_what_would_be_masked_is_refused(flag: str):
    assert "{secret}" in without_secrets(flag)
    assert secret_property(flag) == flag[2:].partition("=")[0]
    with pytest.raises(UsageError):
        check_flag("elasticsearch", flag)
