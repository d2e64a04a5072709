"""Public functions that take the options of their command by name, or a configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from itertools import chain
from textwrap import fill
from typing import Any, TypeVar, get_args

from .config import Config, option_of, unknown_name
from .errors import OptionError, shorten
from .memory import rows_in

R = TypeVar("R")
_SETTINGS = (str, int, float, os.PathLike, Sequence, Mapping, Config)
"""Types of options; an object of another type, such as a judge's function, is no option."""


def takes(
    *, omit: Sequence[str] = (), **configs: type[Config]
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Makes a function of configurations one that takes their options by name as well.

    A configuration that the caller has may come with options, which then count more. Options that
    are arguments of the command may be given by position, after the function's own; so may frames
    and lists of dicts for rows. ``inspect.signature`` and the documentation list all options.

    Args:
        omit: Options that the function does not take.
        **configs: The configurations by the function's parameters. A function that chooses among
            them has a parameter ``options`` instead, which gets the options as they are.

    Raises:
        OptionError: When called with an option that there is not, or that is unusable.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        binding = _Binding(function, configs, omit)

        @wraps(function)
        def call(*values: Any, **named: Any) -> R:
            return function(**binding.bound(values, named))

        call.__signature__ = binding.signature()  # type: ignore[attr-defined]
        call.__doc__ = binding.documentation(function.__doc__ or "")
        return call

    return decorate


class _Binding:
    """Binds the arguments of a caller to those of the function.

    Attributes:
        own: The function's own parameters.
        fields: The options by name.
        names: Parameters that may be positional.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        configs: Mapping[str, type[Config]],
        omit: Sequence[str],
    ) -> None:
        self.name, self.configs = function.__name__, configs
        self.own = dict(signature(function).parameters)
        self.chooses = self.own.pop("options", None) is not None
        fields = chain.from_iterable(of.option_fields().items() for of in configs.values())
        self.fields = {name: field for name, field in fields if name not in omit}
        kind = Parameter.POSITIONAL_OR_KEYWORD
        arguments = [name for name, field in self.fields.items() if option_of(field).is_argument]
        own = [name for name, p in self.own.items() if p.kind is kind and name != "config"]
        self.names = [*dict.fromkeys([*own, *arguments])]

    def _values(self, values: Sequence[Any], named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Every value with its name; a configuration is known by its type."""
        free = [*self.names]
        for value in values:
            known = (name for name, of in self.configs.items() if isinstance(value, of))
            name = next(known, free[0] if free else None)
            if name is None or name in named:
                expected = f"at most {len(self.names)} values by position, each once"
                raise TypeError(f"{self.name}: expected {expected}")
            free = [each for each in free if each != name]
            yield name, value
        yield from named.items()

    def bound(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the function."""
        arguments, options, bases = dict[str, Any](), dict[str, Any](), dict[str, Any]()
        for name, value in self._values(values, named):
            rows = rows_in(value)
            is_option = isinstance(value, _SETTINGS) and rows is None
            if name in self.configs:
                bases[name] = value
            elif name in self.fields and (is_option or name not in self.own):
                options[name] = value
            elif name in self.own:
                arguments[name] = value if rows is None else rows
            else:
                raise unknown_name(f"{self.name}: expected ", name, sorted(self.fields))
        if self.chooses:
            return {**arguments, "options": options}
        configs = {name: self._config(name, bases.get(name), options) for name in self.configs}
        return arguments | configs

    def _config(self, name: str, base: Any, options: Mapping[str, Any]) -> Config:
        """A configuration of options, upon one that the caller has, or a model's name."""
        config = self.configs[name]
        fields = config.option_fields()
        own = {n: value for n, value in options.items() if n in fields}
        own = {n: v for n, v in own.items() if v is not None or _takes_none(fields[n].annotation)}
        if isinstance(base, config):
            stated = {n: getattr(base, n) for n in base.model_fields_set}
            return type(base).of(stated | own) if own else base
        if base is None:
            return config.of(own)
        if isinstance(base, str) and name != "config":
            return config.of(own, model=base)
        raise OptionError(f"{name}: expected a {config.__name__}, got {shorten(base)}")

    def signature(self) -> Signature:
        """The function's own parameters, and the options."""
        first, last = dict[str, Parameter](), dict[str, Parameter]()
        default = None if "config" in self.own else Parameter.empty
        for name in self.names:
            first[name] = self.own.get(name) or self._parameter(name, default)
        for name in ("config",) if "config" in self.own else ():
            first[name] = self.own[name].replace(default=None)
        for name, field in self.fields.items():
            default = None if field.is_required() or field.default_factory else field.default
            last[name] = self._parameter(name, default).replace(kind=Parameter.KEYWORD_ONLY)
        for name, parameter in self.own.items():
            optional = parameter.replace(default=None) if name in self.configs else parameter
            last[name] = optional.replace(kind=Parameter.KEYWORD_ONLY)
        return Signature([*first.values(), *(p for name, p in last.items() if name not in first)])

    def _parameter(self, name: str, default: Any) -> Parameter:
        annotation = self.fields[name].annotation
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Parameter(name, kind, default=default, annotation=annotation)

    def documentation(self, text: str) -> str:
        """The text with a line for each option, before what is returned and raised."""
        head, *rest = re.split(r"\n\n(?=(?:Returns|Raises):)", cleandoc(text), maxsplit=1)
        fields = {name: field for name, field in self.fields.items() if name not in self.own}
        lines = [
            fill(
                f"{name}: {field.description}", 92, initial_indent="    ", subsequent_indent=" " * 8
            )
            for name, field in fields.items()
        ]
        head += "" if "\n\nArgs:" in head else "\n\nArgs:"
        return "\n\n".join(["\n".join([head, *lines]), *rest])


def _takes_none(annotation: Any) -> bool:
    return type(None) in get_args(annotation)
