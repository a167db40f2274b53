"""Operations that make or remove what a track declares: indices, data streams and templates of all kinds."""

from typing import Any

import msgspec

from benchctl.track.operations.common import Retried, demand

Names = str | tuple[str, ...] | None


def names_of(given: Names) -> tuple[str, ...]:
    """One name or several, as a tuple; none when nothing was said."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


class CreateIndex(Retried, frozen=True, kw_only=True, tag="create-index"):
    """Create indices.

    Attributes:
        index: one or several; None means all of the track's.
        body: settings and mappings; None means those that the track declares.
        settings: laid over the body's settings, with or without the `index.` before their names.
    """

    index: Names = None
    body: dict[str, Any] | None = None
    settings: dict[str, Any] = msgspec.field(default_factory=dict)


class DeleteIndex(Retried, frozen=True, kw_only=True, tag="delete-index"):
    """Delete indices.

    Attributes:
        index: one or several; None means all of the track's.
        only_if_exists: a missing one is no failure.
    """

    index: Names = None
    only_if_exists: bool = True


class CreateDataStream(Retried, frozen=True, kw_only=True, tag="create-data-stream"):
    """Create data streams.

    Attributes:
        data_stream: one or several; None means all of the track's.
    """

    data_stream: Names = None


class DeleteDataStream(Retried, frozen=True, kw_only=True, tag="delete-data-stream"):
    """Delete data streams.

    Attributes:
        data_stream: one or several; None means all of the track's.
        only_if_exists: a missing one is no failure.
    """

    data_stream: Names = None
    only_if_exists: bool = True


class CreateTemplate(Retried, frozen=True, kw_only=True):
    """Operations that create templates.

    Attributes:
        template: its name; None means all of this kind that the track declares.
        body: of one that the track does not declare.
        settings: laid over the settings of those that it does.
    """

    template: str | None = None
    body: dict[str, Any] | None = None
    settings: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((self.body is None or self.template is not None, "body: a template needs a name, too"))


class DeleteTemplate(Retried, frozen=True, kw_only=True):
    """Operations that delete templates.

    Attributes:
        template: its name; None means all of this kind that the track declares.
        only_if_exists: a missing one is no failure.
        delete_matching_indices: also the indices that they are for; None leaves it to the track.
        index_pattern: of these indices.
    """

    template: str | None = None
    only_if_exists: bool = True
    delete_matching_indices: bool | None = None
    index_pattern: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (
                not self.delete_matching_indices or self.template is None or bool(self.index_pattern),
                "delete-matching-indices needs an index-pattern",
            ),
        )


class CreateIndexTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-index-template"):
    """Create a template of the old kind."""


class DeleteIndexTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-index-template"):
    """Delete a template of the old kind."""


class CreateComposableTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-composable-template"):
    """Create an index template."""


class DeleteComposableTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-composable-template"):
    """Delete an index template."""


class CreateComponentTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-component-template"):
    """Create a component template."""


class DeleteComponentTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-component-template"):
    """Delete a component template."""
