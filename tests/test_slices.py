"""The register of slices."""

import importlib

import pytest

from benchctl.slices import SLICES, Hook, hooks


@pytest.mark.parametrize("name", sorted({name for slice_ in SLICES.values() for name in slice_.hooks}))
def test_every_hook_of_the_register_is_given(name: Hook):
    assert all(one is not None for one in hooks(name))


@pytest.mark.parametrize("slice_", SLICES)
def test_the_register_names_every_hook_that_a_slice_has(slice_: str):
    module = importlib.import_module(f"benchctl.{slice_}.hooks")
    strings = {
        name for name, value in vars(module).items() if isinstance(value, str) and not name.startswith("_")
    }
    assert strings <= set(SLICES[slice_].hooks)
