"""Where what is shipped is found: in an installed package, and in a checkout."""

from pathlib import Path

import pytest

from benchctl.track.library import shipped


@pytest.mark.parametrize("kind", ["tracks", "challenges", "experiments"])
def test_a_package_has_its_own_and_a_checkout_has_it_at_its_top(tmp_path: Path, kind: str):
    installed = tmp_path / "site-packages" / "benchctl"
    (installed / "shipped" / kind).mkdir(parents=True)
    assert shipped(kind, package=installed) == installed / "shipped" / kind
    assert shipped(kind, package=tmp_path / "src" / "benchctl") == tmp_path / kind
    assert any(shipped(kind).iterdir())
