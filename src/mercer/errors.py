"""Errors that a person can act on: what is required, what was got, what to do."""

from __future__ import annotations


class InvalidInput(ValueError):
    """Input that cannot be used. In three parts; for a kernel expression also an excerpt with carets.

    `option` is the advice for the command line, where Python code would not help: an option, in a sentence.

    >>> raise InvalidInput("`sigma` must be > 0", got="-1.0", advice="Pass a positive width.")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `sigma` must be > 0, got -1.0. Pass a positive width.
    >>> InvalidInput("Rows must fit", got="9", advice="Set n_centers=5.", option="Add --centers 5.").in_shell
    'Rows must fit, got 9. Add --centers 5.'
    """

    def __init__(self, required: str, *, got: object, advice: str, excerpt: str = "", option: str = "") -> None:
        self.required, self.got, self.advice, self.excerpt, self.option = required, str(got), advice, excerpt, option
        super().__init__(f"{self.sentence}\n{excerpt}" if excerpt else self.sentence)

    @property
    def sentence(self) -> str:
        """The message without the excerpt."""
        return f"{self.required}, got {self.got}. {self.advice}"

    @property
    def in_shell(self) -> str:
        """The message of a command: its advice is an option."""
        return f"{self.required}, got {self.got}. {self.option or self.advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.required, self.got, self.advice, self.excerpt, self.option)


class InvalidType(InvalidInput, TypeError):
    """Input of a kind that cannot be used at all, such as text where numbers are needed.

    >>> import mercer as mc
    >>> mc.Linear()([["red"]])
    Traceback (most recent call last):
    mercer.errors.InvalidType: X must be numeric, got dtype <U3 (text). Convert it to numbers or leave it out; for \
other objects use Delta() or Hamming() on categories, Intersection() on sets, FromFunction(f) on any objects.
    """


class MissingValues(InvalidInput):
    """Rows with missing values, for a kernel or a model that needs every value.

    >>> import mercer as mc
    >>> mc.Gaussian(1.0)([[float("nan")]])
    Traceback (most recent call last):
    mercer.errors.MissingValues: X must be finite, without NaN or infinity, got 1 such entries, the \
first (NaN) in row 0, column 0. Drop or impute missing values first.
    """


class RuleBroken(InvalidInput):
    """A construction rule whose condition does not hold, so that the result would not be a kernel.

    >>> import mercer as mc
    >>> -1.0 * mc.Gaussian(1.0)
    Traceback (most recent call last):
    mercer.errors.RuleBroken: Rule c·k: the factor must be > 0, got -1.0. Leave the term out, \
since only positive multiples of kernels are kernels, or test it as a mc.FromFunction with mc.refute.
    """


def _rebuild(
    cls: type[InvalidInput], required: str, got: str, advice: str, excerpt: str, option: str = ""
) -> InvalidInput:
    return cls(required, got=got, advice=advice, excerpt=excerpt, option=option)
