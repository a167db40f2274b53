import base64
from urllib.parse import quote, quote_plus

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.notify import WITHHELD, CommandSpec, Redactor, SmtpSpec, WebhookSpec

HOOK = WebhookSpec(url_env="HOOK", headers_env={"Authorization": "KEY"})
MAIL = msgspec.convert(
    {
        "kind": "smtp",
        "host": "mail.example.org",
        "from": "a@b.org",
        "to": ["c@d.org"],
        "user-env": "MAIL_USER",
        "password-env": "MAIL_PW",
    },
    SmtpSpec,
)
COMMAND = CommandSpec(run=("tell",))

# What no message of ours has in it.
secrets = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=6, max_size=40).map(
    lambda text: f"q{text.strip()}Z7q"
)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)


@given(secret=secrets, before=words, after=words)
def test_no_form_of_a_secret_comes_through(secret: str, before: str, after: str):
    redactor = Redactor([HOOK, MAIL], {"MAIL_PW": secret})
    raw = secret.encode()
    forms = [secret, quote(raw), quote(raw, safe=""), quote_plus(raw), base64.b64encode(raw).decode()]
    for form in (*forms, repr(secret)):
        cleaned = redactor.clean(f"{before}{form}{after}")
        assert not any(one in cleaned for one in forms)


def test_a_secret_of_several_words_is_hidden_as_forms_of_the_web_write_it():
    said = Redactor([MAIL], {"MAIL_PW": "in a few words"}).clean("pw=in+a+few+words&x")
    assert said == "pw=[secret]&x"


@given(before=st.binary(max_size=9), secret=secrets, after=st.binary(max_size=9))
def test_a_secret_that_was_encoded_together_with_others_is_hidden(before: bytes, secret: str, after: bytes):
    said = base64.b64encode(before + secret.encode() + after).decode()
    cleaned = Redactor([MAIL], {"MAIL_PW": secret}).clean(said)
    # Only what the letters at both ends share with their neighbours is left.
    hidden = len(said) - len(cleaned.replace("[secret]", ""))
    assert hidden * 6 > (len(secret.encode()) - 2) * 8


@given(path=st.lists(st.text("abcdefXYZ0189", min_size=6, max_size=20).map(lambda t: f"q{t}Z"), min_size=1))
def test_no_part_of_a_secret_address_comes_through(path: list[str]):
    url = f"https://me:hunter2@hooks.example.org/{'/'.join(path)}?token=swordfish#there"
    redactor = Redactor([HOOK], {"HOOK": url})
    said = redactor.clean(
        f"POST {url}: no {url[8:]}, {' '.join(path)}, swordfish, hunter2, hooks.example.org"
    )
    assert not any(part in said for part in (*path, "swordfish", "hunter2", "hooks.example.org"))


def test_the_word_behind_bearer_is_a_secret_by_itself_and_bearer_is_none():
    redactor = Redactor([HOOK], {"KEY": "Bearer hunter2000"})
    assert redactor.clean("a Bearer has hunter2000") == "a Bearer has [secret]"


def test_what_is_named_like_a_secret_is_taken_for_one_though_nobody_declared_it():
    environ = {
        "AWS_SECRET_ACCESS_KEY": "hunter2000",
        "GITHUB_TOKEN": "swordfish",
        "GIT_AUTHOR_NAME": "C.UTF-8",
    }
    redactor = Redactor([COMMAND], environ)
    assert redactor.clean("hunter2000 swordfish C.UTF-8") == "[secret] [secret] C.UTF-8"


def test_short_values_of_what_nobody_declared_are_left_alone():
    assert Redactor([COMMAND], {"USE_AUTH": "yes"}).clean("yes, it failed") == "yes, it failed"


def test_words_of_others_are_withheld_where_a_secret_is_too_short_to_be_found():
    redactor = Redactor([MAIL], {"MAIL_PW": "a"})
    assert redactor.clean("a password is a password") == WITHHELD
    assert redactor.clean("  ") == ""


def test_without_secrets_nothing_is_changed():
    assert Redactor([HOOK, MAIL], {}).clean("no connection") == "no connection"
