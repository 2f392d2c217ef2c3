"""A new leaf, and a new space of objects, are one file: nothing else has to be edited."""

from __future__ import annotations

import importlib.util
import pickle
import sys

import numpy as np
import pytest

import mercer as mc
from mercer.kernels import vocabulary as words
from mercer.kernels.algebra.expression import parse
from mercer.kernels.catalogue import catalogue
from mercer.testing import LawBroken, check_laws, sample

FILE = '''
import numpy as np
import mercer as mc


class Words(mc.Space):
    """Words, of which there is at least one letter."""

    def sample(self, kernel, n, rng):
        return ["".join(rng.choice(list("abc"), size=rng.integers(1, 5))) for _ in range(n)]

    def show(self, x):
        return f"the word {x}"


WORDS = Words("words")


@mc.register
class LastLetter(mc.Kernel):
    """q if two words end alike, plus 1 if they are equal.

    >>> LastLetter()(["sea", "tea"])
    """

    about = mc.About(
        "q·1[the last letters of x and z are equal] + 1[x = z]",
        "Rhymes.",
        "LastLetter(q=2.0)",
    )
    q: float = mc.positive(1.0)
    space = WORDS

    def encode(self, X):
        return list(X)

    def tile(self, block, out):
        x, z = block.encoded(self)
        for i, a in enumerate(x):
            for j, b in enumerate(z):
                out[i, j] = self.q * (a[-1] == b[-1]) + (a == b)

    def derivation(self):
        return mc.Axiom(self, "one-hot vectors of the last letter and of the word")


@mc.register
class Longer(mc.Kernel):
    """|x| − |z|, squared: no kernel, though its author says so."""

    about = mc.About("(|x| − |z|)²", "Nothing.", "Longer()")
    space = WORDS

    def encode(self, X):
        return list(X)

    def tile(self, block, out):
        x, z = (np.array([len(word) for word in side], dtype=float) for side in block.encoded(self))
        out[...] = (x[:, None] - z) ** 2

    def derivation(self):
        return mc.Axiom(self, "it looks like one")
'''


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The module, as a user would import it."""
    monkeypatch.setattr(words, "_added", {})
    path = tmp_path / "rhymes.py"
    path.write_text(FILE)
    spec = importlib.util.spec_from_file_location("rhymes", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "rhymes", module)
    spec.loader.exec_module(module)
    return module


def test_the_laws_hold(added):
    obeyed = check_laws(added.LastLetter(2.0))
    assert {"symmetry", "positive semidefinite", "gradient", "operator", "enclosure"} <= set(obeyed)
    with pytest.raises(LawBroken, match="positive semidefinite"):
        check_laws(added.Longer())


def test_samples_are_of_the_space(added):
    k = added.LastLetter() * added.LastLetter(3.0)
    assert k.space == "words"
    assert all(isinstance(word, str) and word for word in sample(k, 20))


def test_text(added):
    k = parse("0.5 * LastLetter(q=2.0) + LastLetter()")
    assert k == 0.5 * added.LastLetter(2.0) + added.LastLetter(1.0)
    assert parse(repr(k)) == k
    assert pickle.loads(pickle.dumps(k)) == k
    with pytest.raises(mc.InvalidInput, match="Did you mean LastLetter"):
        parse("LastLeter()")


def test_catalogue(added, capsys):
    entry = next(e for e in catalogue() if e.name == "LastLetter")
    assert (entry.kind, entry.space, entry.textual, entry.proven) == ("kernel", "words", True, True)
    assert [(p.name, p.symbol, p.domain, p.free) for p in entry.parameters] == [("q", "q", "> 0", True)]
    from mercer.cli.app import run

    assert run(["kernels", "LastLetter"]) == 0
    assert "Rhymes" in capsys.readouterr().out


def test_check_and_refute(added):
    assert mc.check(added.LastLetter(), ["sea", "tea", "sun"]).psd
    assert not mc.refute(added.LastLetter(2.0), seconds=0.3).refuted
    found = mc.refute(added.Longer())
    assert found.refuted
    assert "the word" in str(found)
    # a function of words, by the name of their space
    assert mc.refute(mc.FromFunction(lambda x, z: float((len(x) - len(z)) ** 2)), space="words").refuted
    assert added.LastLetter().proof().claimed
    assert "claimed by its author" in str((added.LastLetter() + 1.0).proof())


def test_models(added):
    X = ["sea", "tea", "pea", "sun", "fun", "run", "bee", "see"]
    y = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0])
    for kernel in (added.LastLetter(50.0), "LastLetter(q=50.0)"):
        kernel = parse(kernel) if isinstance(kernel, str) else kernel
        model = mc.KernelRidge(kernel, alpha=1e-3).fit(X, y)
        np.testing.assert_allclose(model.predict(["flea", "nun", "free"]), [1.0, 2.0, 3.0], atol=0.1)
    labels = mc.SVC(added.LastLetter(2.0), C=10.0).fit(X, ["a", "a", "a", "n", "n", "n", "e", "e"])
    assert labels.predict(["flea", "nun", "free"]).tolist() == ["a", "n", "e"]
    tuned = mc.tune(mc.KernelRidge(added.LastLetter(2.0), alpha=0.1), X, y)
    assert tuned.kernel_.theta.shape == (1,)


def test_what_is_refused(added):
    with pytest.raises(mc.InvalidInput, match="about"):

        @mc.register
        class Silent(mc.Kernel):
            def tile(self, block, out):
                out[...] = 1.0

    with pytest.raises(mc.InvalidInput, match="name of its own"):
        mc.register(type("Gaussian", (mc.Kernel,), {"tile": lambda self, block, out: None, "about": mc.Linear.about}))
    with pytest.raises(mc.InvalidInput, match="can be built"):
        mc.register(mc.Kernel)
    with pytest.raises(mc.InvalidInput, match="'words'"):
        mc.refute(mc.FromFunction(max), space="numbers")


def test_registering_again_replaces(added):
    class LastLetter(mc.Kernel):
        about = mc.About("1", "A second thought.", "LastLetter()")

        def tile(self, block, out):
            out[...] = 1.0

    mc.register(LastLetter)
    assert type(parse("LastLetter()")) is LastLetter


def test_a_space_that_cannot_draw_objects_says_what_to_do():
    with pytest.raises(mc.InvalidInput, match=r"the space 'clouds' without `sample`\. Define `sample`"):
        mc.Space("clouds").sample(mc.Linear(), 3, np.random.default_rng(0))
