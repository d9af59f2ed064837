"""Files that a front end fills in: HTML, XML, Markdown and text, by Jinja's templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.core.safe_text import as_markdown, plain


def filled(
    template: Path, values: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]
) -> str:
    """Fill a template: names, logs and reasons are shown as text, whatever they hold.

    Every value is escaped for the kind of file that the template's name says."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=template.suffix != ".txt",
        undefined=jinja2.StrictUndefined,
        finalize=_in_markdown if template.suffix == ".md" else _harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(values)


def _harmless(value: Any) -> Any:
    """Remove what escaping leaves: control characters, and what reverses text."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _in_markdown(value: Any) -> Markup:
    return value if isinstance(value, Markup) else Markup(as_markdown(str(value)))
