"""The command line app: warnings, errors and exit codes of a call."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from wellsep import __version__
from wellsep.cli.commands import JOBS, Commands
from wellsep.cli.printing import print_error
from wellsep.cli.wording import flags_of, in_shell_words, with_its_flag

DEBUG_VARIABLE = "WELLSEP_DEBUG"
DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
# What the library raises for bad input. An error with an attribute exit_code decides by itself.
BAD_INPUT = (ValueError, TypeError, OSError, ImportError, KeyError)


def build_app() -> typer.Typer:
    """Build the app; its commands are imported when they are called."""
    app = typer.Typer(
        name="wellsep",
        help="Rank, score and make clusterings, without true labels.",
        epilog="The help of each command has examples: wellsep score --help",
        no_args_is_help=True,
        add_completion=True,
        cls=Commands,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_shared_options)
    for job, summaries in JOBS.items():
        for name, summary in summaries.items():
            app.command(name, help=summary, rich_help_panel=job)(lambda: None)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 done, 1 no answer, 2 bad usage or input.

    ``choose-k`` and ``explore`` end with 3 if there is no structure beyond one cluster.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments or bool(os.environ.get(DEBUG_VARIABLE))
    named = next((word for word in arguments if not word.startswith("-")), None)
    try:
        with _plain_warnings(named), _whole_output():
            build_app()(arguments, prog_name="wellsep")
    except SystemExit as end:
        if interruption := _interruption_behind(end):
            return _interrupted(interruption)
        return end.code if isinstance(end.code, int) else DONE if end.code is None else FAILED
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except BrokenPipeError:
        # The reader of the pipe has closed it.
        _drop_output()
        return DONE
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            print_error(f"Error: {_sentence(error, named, arguments)}")
        return getattr(error, "exit_code", MISUSED if isinstance(error, BAD_INPUT) else FAILED)
    return DONE


def _interruption_behind(end: BaseException) -> KeyboardInterrupt | None:
    """Find the Ctrl-C that typer turned into an exit."""
    cause: BaseException | None = end
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause


def _interrupted(error: KeyboardInterrupt) -> int:
    print_error(str(error) or "Interrupted. Files that were complete are kept.")
    return INTERRUPTED


@contextlib.contextmanager
def _whole_output() -> Iterator[None]:
    """Make output that does not fit on a full disk an error with a sentence."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # Writers of files have a sentence of their own.
        if error.errno != errno.ENOSPC or error.strerror != os.strerror(errno.ENOSPC):
            raise
        _drop_output()
        raise OSError(
            error.errno, f"Writing the output failed: {error.strerror}. It is not complete."
        ) from None


def _drop_output() -> None:
    """Forget what could not be written; else the interpreter warns at exit."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _plain_warnings(command: str | None) -> Iterator[None]:
    """Print a warning as one line in the words of the shell, without the line that raised it."""

    def show(message: Warning | str, *details: object) -> None:
        print_error(f"Warning: {_in_words(' '.join(str(message).split()), command)}")

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _sentence(error: Exception, command: str | None, arguments: Sequence[str]) -> str:
    """Put the error on one line, with the flags of the command in the place of arguments.

    An error in the program, not in the input, shows its class.
    """
    text = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        text = error.strerror  # without its number
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename2 or error.filename} cannot be used: {error.strerror}."
    text = " ".join(str(text).split())
    if isinstance(error, BAD_INPUT) and text:
        return _in_words(text, command, arguments)
    return f"{type(error).__name__}: {text} (wellsep --debug ... shows where)"


def _in_words(text: str, command: str | None, arguments: Sequence[str] = ()) -> str:
    """A sentence of the library in the words of the shell, its beginning by the flag given."""
    flags = flags_of(command)
    return in_shell_words(with_its_flag(text, arguments, flags), flags)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"wellsep {__version__}\n")
        raise typer.Exit()


def _shared_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", envvar=DEBUG_VARIABLE)
    ] = False,
) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
