"""The `python -m lab` group: commands load when called; every ending is one line and an exit status."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from lab.cli.crash_log import write_crash_log
from lab.findings import LabError
from lab.messages import word, word_finding

# name → the line that `--help` shows, so that listing the commands imports none of them
COMMANDS = {
    "doctor": "What is here: host, GPU, engine, model, gateway, database.",
    "check": "Validate config and experiment files.",
    "set": "Edit the live config pair, format kept; print the diff.",
    "diff": "Compare versions of the config pair.",
    "restore": "List the versions of the config pair, or put one back.",
    "convert": "Turn the config pair into the other article's form.",
    "paste": "Read settings out of an article's text.",
    "command": "Show the engine command the live config pair stands for.",
    "run": "Queue an experiment.",
    "list": "List the experiments.",
    "show": "Show one experiment's result table.",
    "stop": "Stop an experiment.",
    "load": "Measure any OpenAI-compatible address.",
    "models": "List the models of this host; look one up on the hub; fetch it.",
    "probe": "Check a connection step by step.",
    "export": "Write the files of a measured arm.",
    "runner": "Be the runner of this host, or end it.",
}
EXIT_FAILED = 1
EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose command NAME is the click command of that name in the module `lab.cli.NAME`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"lab.cli.{cmd_name}")
        found = [each for each in vars(module).values() if isinstance(each, click.Command) and each.name == cmd_name]
        return found[0] if found else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Tune an inference engine's knobs, measure the difference, export the winner.",
)
@click.version_option(package_name=None, version="0.1.0", prog_name="lab", message="%(prog)s %(version)s")
def lab() -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 ran but failed, 2 wrong input, 130 interrupted."""
    try:
        outcome = lab.main(args=arguments, prog_name="python -m lab", standalone_mode=False)
    except LabError as problem:
        for finding in problem.findings:
            say(word_finding(finding))
        return EXIT_WRONG_INPUT
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.ctx.get_help() if usage.ctx else usage.format_message())
        return EXIT_WRONG_INPUT
    except click.ClickException as usage:
        say(usage.format_message())
        return EXIT_WRONG_INPUT
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # the reader (`| head`) has what it wanted; Python must not fail again when it flushes at exit
        sys.stdout = None
        return EXIT_FAILED
    except Exception as bug:  # the edge of the process: the traceback goes to a file, one line to the user
        say(word("cli-crash", {"problem": f"{type(bug).__name__}: {bug}", "log": str(write_crash_log(bug))}))
        return EXIT_FAILED
    return outcome if isinstance(outcome, int) else 0


def say(sentence: str) -> None:
    """One line on stderr, whatever the sentence holds."""
    click.echo(" ".join(sentence.split()), err=True)
