"""The settings of a command: each an option of its own, a ``--config KEY=VALUE``, a line of TOML.

The help shows them as one list, so that the options that everybody needs can be seen at a glance.
Nothing heavy is imported here: the list is literal, and a test holds it against the records.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand

from ..errors import OptionError


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting.

    Attributes:
        help: What it does, in a few words.
        switch: Value that the bare option stands for; None where it takes one.
    """

    help: str
    switch: str | None = None


JUDGE_SETTINGS: Mapping[str, Setting] = {
    "transport": Setting("auto, litellm or direct"),
    "temperature": Setting("0 to 2, or default for the provider's"),
    "seed": Setting("sent with each call, or default for none"),
    "max_reply_tokens": Setting("limit of a reply"),
    "max_reasks": Setting("times that an unusable or contradictory reply is asked for again"),
    "params": Setting("table of further parameters of the model"),
    "samples": Setting("independent replies per item; the majority decides"),
    "logprobs": Setting("ask for the probabilities of the verdict", "true"),
    "vision": Setting("auto, yes or no"),
    "max_images": Setting("pictures per item"),
    "max_image_bytes": Setting("size of a picture"),
    "timeout_s": Setting("seconds until a call counts as hung"),
    "deadline_s": Setting("seconds within which an item's last attempt begins"),
    "outage_s": Setting("seconds without answer until the endpoint counts as dead"),
    "retries": Setting("repeats after a failure that may pass"),
    "max_concurrency": Setting("calls in flight"),
    "rpm": Setting("calls per minute"),
    "tpm": Setting("tokens per minute"),
    "price_input": Setting("US dollars per million tokens sent"),
    "price_output": Setting("US dollars per million tokens received"),
    "price_cached": Setting("US dollars per million tokens found in the prefix cache"),
    "lead": Setting("first item of a case goes ahead: true or false"),
}
RUN_SETTINGS: Mapping[str, Setting] = {
    "max_unscored": Setting("share of unscored rows that is still exit code 0"),
    "max_cost": Setting("US dollars this session may cost"),
    "max_calls": Setting("calls this session may make"),
    "max_tokens": Setting("tokens this session may take"),
    "max_seconds": Setting("seconds this session may take"),
    "data_root": Setting("folder that paths of pictures are looked for in, before the input's own"),
    "overwrite": Setting("replace another run in --out; the same run continues", "true"),
    "no_cache": Setting("neither use nor keep replies of other runs", "true"),
    "dry_run": Setting("call nothing; estimate calls, tokens, cost and time", "true"),
    "batch": Setting("send everything through the provider's batch interface", "true"),
    "panel": Setting("several judges: majority, mean or dawid-skene"),
    "escalate": Setting("model that judges again what the first one doubts"),
    "when": Setting("what is escalated: entropy>0.5, entropy.max>0.5, share=0.2"),
}
AUDIT_SETTINGS: Mapping[str, Setting] = {
    "bases": Setting("plans taken as correct, one a case: 60, or 8 with --quick"),
    "seed_of_draw": Setting("seed of every choice of what is asked"),
    "adjudicator": Setting("rater whose word is final; else the majority's is"),
    "fail_on": Setting("probes that make the exit code 1 when failed: names, any or none"),
    **{
        name: RUN_SETTINGS[name]
        for name in ("max_unscored", "max_cost", "max_calls", "max_tokens", "max_seconds")
    },
    "data_root": RUN_SETTINGS["data_root"],
    "overwrite": Setting("replace another audit in --out; the same one continues", "true"),
    "no_cache": RUN_SETTINGS["no_cache"],
    "dry_run": Setting("call nothing; say what would be asked", "true"),
}


class SettingsCommand(TyperCommand):
    """A command whose settings are options too: ``--max-cost 5`` is ``--config max_cost=5``."""

    settings: Mapping[str, Setting] = {**JUDGE_SETTINGS, **RUN_SETTINGS}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Turns settings into ``--config`` entries before anything else is parsed."""
        known = {name for param in self.params for name in param.opts}
        return super().parse_args(ctx, rewrite(args, self.settings, known))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Lists the settings below the options."""
        with formatter.section("Settings (options too, or keys of --config and its TOML files)"):
            rows = [(_option(name), found.help) for name, found in self.settings.items()]
            formatter.write_dl(rows)


class AuditCommand(SettingsCommand):
    """The same for the command that audits."""

    settings = {**JUDGE_SETTINGS, **AUDIT_SETTINGS}


def rewrite(args: list[str], settings: Mapping[str, Setting], known: set[str]) -> list[str]:
    """Replaces options that are settings by entries of ``--config``.

    Args:
        args: The command line.
        settings: The settings.
        known: The command's own options.

    Raises:
        OptionError: If an option is neither, or a setting lacks its value.
    """
    rewritten: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return [*rewritten, arg, *rest]
        option, has_value, value = arg.partition("=")
        name = option[2:].replace("-", "_")
        if not option.startswith("--") or option in known or option == "--help":
            rewritten.append(arg)
            continue
        if name not in settings:
            raise OptionError(f"No such option: {option}{_hint(option, settings, known)}")
        text = value if has_value else _value(settings[name], option, rest)
        rewritten += ["--config", f"{name}={text}"]
    return rewritten


def _value(setting: Setting, option: str, rest: Any) -> str:
    if setting.switch is not None:
        return setting.switch
    value = next(rest, None)
    if value is None or value.startswith("--"):
        raise OptionError(f"{option}: expected a value ({setting.help}), got nothing")
    return value


def _hint(option: str, settings: Mapping[str, Setting], known: set[str]) -> str:
    near = difflib.get_close_matches(option, [*known, *map(_option, settings)], n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
