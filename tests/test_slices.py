"""The register of slices."""

from typing import get_args

import pytest

from benchctl.slices import SLICES, Hook, hooks


@pytest.mark.parametrize("name", get_args(Hook))
def test_every_hook_is_given(name: Hook):
    assert len(hooks(name)) == sum(name in slice_.hooks for slice_ in SLICES.values()) > 0
