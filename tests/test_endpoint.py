"""Addresses, credentials and trust of a cluster, and that no text gives a secret away."""

import base64
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.endpoint import Auth, Endpoint, read_hosts, system_trust, variable
from benchctl.errors import UsageError
from golden import Cases


def test_addresses_are_read(cases: Cases):
    cases("addresses", lambda text: "\n".join(read_hosts(text)))


@pytest.mark.parametrize(
    "text",
    ["", "localhost:9200", "ftp://a:1", "http://", "http://a:1/#x", "http://a:1?x=1", "http://a:99999",
     "a,b", "http://a:1,http://a:1/"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(UsageError):
        read_hosts(text)


@pytest.mark.parametrize(
    "text",
    ["https://me:hunter2@host:9200", "https://me:hun/ter2@host", "me:hunter2@host", "https://me:hunter2@[x"],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(text: str):
    with pytest.raises(UsageError, match="holds credentials") as caught:
        read_hosts(text)
    assert "--targets" in caught.value.hint
    assert "hun" not in "".join(traceback.format_exception(caught.value))


def test_headers_are_those_of_the_protocol():
    assert Auth.basic("elastic", "s3:cret").header == (
        f"Authorization: Basic {base64.b64encode(b'elastic:s3:cret').decode()}"
    )
    assert Auth.api_key("aWQ6a2V5").header == "Authorization: ApiKey aWQ6a2V5"
    assert Auth.api_key("id:key").header == "Authorization: ApiKey aWQ6a2V5"
    assert Auth.bearer("t0ken").header == "Authorization: Bearer t0ken"
    assert Endpoint.of("http://a:1").headers == ()


@pytest.mark.parametrize("secret", ["", "two words", "line\r\nX-Injected", "snow\N{SNOWMAN}"])
def test_secrets_that_no_header_can_hold_are_refused_and_not_repeated(secret: str):
    for make in (Auth.api_key, Auth.bearer):
        with pytest.raises(UsageError) as caught:
            make(secret)
        assert not secret or secret not in str(caught.value)


def test_a_users_name_with_a_colon_would_be_another_user():
    with pytest.raises(UsageError, match="colon"):
        Auth.basic("a:b", "c")


@given(st.text("0123456789", min_size=8))
def test_no_text_of_an_endpoint_holds_the_secret(secret: str):
    for auth in (Auth.basic("someone", secret), Auth.api_key(f"id:{secret}"), Auth.bearer(secret)):
        endpoint = Endpoint(("https://host:9200",), auth)
        shown = f"{endpoint!r} {endpoint} {endpoint.title} {auth!r} {auth}"
        for hidden in (secret, auth.header.rpartition(" ")[2]):
            assert hidden not in shown


def test_an_endpoint_knows_how_it_is_reached():
    assert Endpoint.of("http://127.0.0.1:1,http://localhost:2,http://[::1]:3").is_local
    assert not Endpoint.of("http://127.0.0.1:1,http://search-1:2").is_local
    assert Endpoint.of("https://a:1,https://b:2").is_encrypted
    assert not Endpoint.of("https://a:1,http://b:2").is_encrypted
    endpoint = Endpoint.of("http://a:1")
    assert Endpoint.of(endpoint) is endpoint


def test_there_is_always_somebody_to_trust():
    trust = system_trust()
    assert any(path is not None and Path(path).exists() for path in (trust.file, trust.folder))


@pytest.mark.parametrize(
    ("name", "what", "expected"),
    [
        ("es", "user", "BENCHCTL_ES_USER"),
        ("es-prod.1", "api-key", "BENCHCTL_ES_PROD_1_API_KEY"),
        ("os@2.11", "bearer", "BENCHCTL_OS_2_11_BEARER"),
    ],
)
def test_secrets_have_variables_of_their_own(name: str, what: str, expected: str):
    assert variable(name, what) == expected
