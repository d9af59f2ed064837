"""The base of what is checked when it is read and not needed where a target runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class StrictModel(BaseModel):
    """Frozen, with no key that is not a field, and no value that is of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
