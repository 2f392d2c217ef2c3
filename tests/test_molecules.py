"""Molecules by RDKit: fingerprints against RDKit's own similarities, graphs, and errors with positions."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import Descriptors, rdFingerprintGenerator

import mercer as mc
from everywhere import works_everywhere
from mercer.data.molecules import recognised
from mercer.data.roles import role_of
from mercer.kernels.vocabulary import suited
from mercer.rkhs.geometry import squared_distances

SMILES = ["CCO", "CCCO", "CCCCO", "CC(C)O", "OCCO", "CCCCCO", "c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "Oc1ccccc1",
          "Clc1ccccc1", "Cc1ccccc1C"]  # fmt: skip
RINGS = [f"c1ccccc1{'C' * n}" for n in range(30)]
LABELS = ["alcohol"] * 6 + ["aromatic"] * 6


@pytest.mark.parametrize(("radius", "bits"), [(2, 2048), (1, 512)])
def test_similarities_are_those_of_rdkit(radius, bits):
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    rows = [generator.GetFingerprint(m) for m in molecules]
    expected = [DataStructs.BulkTanimotoSimilarity(row, rows) for row in rows]
    np.testing.assert_allclose(mc.Tanimoto().after(mc.Fingerprint(radius, bits))(SMILES), expected, rtol=1e-14)
    counts = [generator.GetCountFingerprint(m) for m in molecules]
    expected = [DataStructs.BulkTanimotoSimilarity(row, counts) for row in counts]
    np.testing.assert_allclose(
        mc.MinMax().after(mc.Fingerprint(radius, bits, counts=True))(SMILES), expected, rtol=1e-14
    )


def test_errors_name_the_position():
    for bad in ("C1CC", "", None, 5):
        with pytest.raises(mc.InvalidInput, match=rf"got {bad!r} at position 1"):
            mc.fingerprint(["CCO", bad])
    with pytest.raises(mc.InvalidInput, match="`radius` of Fingerprint"):
        mc.Fingerprint(radius=-1)
    with pytest.raises(mc.InvalidInput, match="`counts`"):
        mc.Fingerprint(counts="yes")


def test_graphs_of_molecules():
    graph = mc.molecule_graph("C=CO")
    assert graph.labels == ("C", "C", "O")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    K = mc.WeisfeilerLehman(2)([mc.molecule_graph(s) for s in SMILES])
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_models(tmp_path):
    works_everywhere(mc.Tanimoto().after(mc.fingerprint), SMILES, LABELS, tmp_path)


# -- recognised among other texts --------------------------------------------------------------------------------------


@pytest.fixture
def without_rdkit(monkeypatch):
    for module in ("rdkit", "rdkit.Chem", "rdkit.rdBase"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("mercer.data.molecules.find_spec", lambda name: None)


@pytest.mark.parametrize(
    "texts",
    [
        ["ACGT", "GATTACA", "CCCC"],
        ["MKV", "ILVF", "CCPS"],
        ["yes", "no"],
        ["SI", "NO", "CON"],
        ["C", "C#", "B", "F#"],
        ["B", "B-", "C", "F"],
        ["C1", "C2", "N13", "B4"],
        ["N2", "O2", "CO2"],
        ["12", "13"],
        ["a small molecule", "another one"],
        ["c1ccccc1", *["words"] * 3],
        [],
    ],
)
def test_other_texts_are_not_molecules(texts, request):
    assert recognised(sorted(set(texts))) == "no"
    request.getfixturevalue("without_rdkit")
    assert recognised(sorted(set(texts))) == "no"


def test_molecules_are_recognised(without_rdkit):
    assert recognised(SMILES) == "needs RDKit"
    assert recognised(["[Na+].[Cl-]", "C/C=C\\C", "C%12CCCC%12", "*CC"]) == "needs RDKit"


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_column_of_smiles_is_read_as_molecules(library):
    frame = library.DataFrame({"name": SMILES, "heat": np.arange(12.0) ** 2})
    plan = mc.TableKernel().explain(frame)
    assert next((r.role, r.by, r.kernel) for r in plan.roles) == ("molecule", "values", "MinMax")
    assert plan.kernel.molecules == ("name",)
    text = mc.TableKernel(roles={"name": "text"}).explain(frame)
    assert next((r.role, r.kernel) for r in text.roles) == ("text", "NGrams")
    said = mc.TableKernel(roles={"name": "molecule"}).explain(library.DataFrame({"name": ["C", "CC", "CCC"]}))
    assert said.roles[0].role == "molecule"
    same = library.DataFrame({"name": ["CCO"] * 3, "heat": [1.0, 2.0, 4.0]})
    assert mc.TableKernel(roles={"name": "molecule"}).explain(same).left_out == {"name": "constant"}


def test_a_missing_molecule_is_like_no_other_and_a_wrong_one_is_named():
    frame = pd.DataFrame({"name": [*SMILES, None, None]})
    k = mc.table_kernel(frame)
    K = k(frame)
    assert K[12, 13] == pytest.approx(1.0)
    np.testing.assert_allclose(K[12, :12], np.exp(-1.0))
    counts = mc.MinMax().after(mc.Fingerprint(counts=True))
    np.testing.assert_allclose(K[:12, :12], np.exp(counts(SMILES) - 1.0), rtol=1e-12)
    wrong = pd.DataFrame({"name": [*RINGS, "C1CC"]})
    with pytest.raises(
        mc.InvalidInput, match=r"'name' must hold molecules.*'C1CC' in row 30.*roles=\{'name': 'text'\}"
    ):
        mc.table_kernel(wrong)
    with pytest.raises(mc.InvalidInput, match=r"'C1CC' in row 1"):
        k(pd.DataFrame({"name": ["CCO", "C1CC"]}))
    with pytest.raises(mc.InvalidInput, match=r"'C1CC' at position 30"):
        mc.KernelRidge().fit([*RINGS, "C1CC"], np.arange(31.0))


def test_smiles_are_no_identifiers():
    assert role_of("compound", pd.Series(RINGS)).role == "molecule"


@pytest.mark.parametrize(
    "X", [SMILES, np.array(SMILES), pd.Series(SMILES), pl.Series(SMILES)], ids=lambda x: type(x).__name__
)
def test_a_list_of_smiles_is_compared_by_fingerprints(X):
    space, kernels = suited(X)
    assert space == "molecules"
    assert "mc.Spectrum" in space.instead
    model = mc.SVC().fit(X, LABELS)
    assert model.kernel_ == next(iter(kernels.values()))
    assert model.score(X, LABELS) == 1.0


@pytest.mark.thorough
def test_automatic_models_say_what_they_assumed(tmp_path):
    sizes = np.array([mc.molecule_graph(s).n for s in SMILES], float)
    model = mc.AutoRegressor(time=5).fit(SMILES, sizes)
    columns = model.choices_[1]
    assert columns.why == "molecules, compared as wholes"
    assert "mc.Spectrum" in columns.advice
    frame = pd.DataFrame({"smiles": SMILES})
    model = mc.AutoRegressor(time=5).fit(frame, sizes)
    columns = model.choices_[1]
    assert "'smiles' is read as molecules" in columns.why
    assert "roles={'smiles': 'text'}" in columns.advice
    assert model.columns_.molecules == {"smiles": "12 different SMILES texts"}
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mc.load(tmp_path / "m.mercer").predict(frame), model.predict(frame))
    assert mc.AutoRegressor(time=5, roles={"smiles": "text"}).fit(frame, sizes).columns_.roles[0].role == "text"


def test_without_rdkit_smiles_are_texts_and_a_note_says_so(without_rdkit):
    with pytest.warns(UserWarning, match="look like SMILES.*pip install"):
        model = mc.SVC().fit(SMILES, LABELS)
    assert model.kernel_ == mc.Spectrum((1, 3)).normalize()
    frame = pd.DataFrame({"smiles": SMILES, "x": np.arange(12.0) ** 2})
    model = mc.AutoClassifier(time=5).fit(frame, LABELS)
    role = model.columns_.roles[0]
    assert (role.role, role.installable) == ("text", True)
    assert "'smiles' is read as text" in model.choices_[1].why
    assert "pip install" in model.choices_[1].advice
    assert not role_of("smiles", frame["smiles"], "text").installable
    with pytest.raises(mc.InvalidInput, match="needs RDKit"):
        mc.table_kernel(frame, roles={"smiles": "molecule"})


def test_counts_that_are_mostly_zeros_are_compared_without_them(monkeypatch):
    rows = mc.Fingerprint(bits=512, counts=True)(SMILES)
    near = [*rows, rows[0] + 1e-9 * (rows[0] > 0)]  # distances that would cancel
    for kernel in (mc.MinMax(), mc.HistogramIntersection(), mc.AdditiveChiSquared()):
        sparse = kernel(near), squared_distances(kernel, near)
        with monkeypatch.context() as patch:
            patch.setattr("mercer.kernels.costs.NONZERO_SHARE", 0.0)
            dense = kernel(near), squared_distances(kernel, near)
        for one, other in zip(sparse, dense):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("X", "got"),
    [
        (["abc", None, "abd"], "a missing value at position 1, among strings"),
        (["CC=O", "CCO", float("nan")], "a missing value at position 2, among strings"),
        ([{1}, {2}, "ab"], "'ab' at position 2, among sets"),
        ([mc.Graph([(0, 1)]), 3, mc.Graph([(0, 1)])], "3 at position 1, among graphs"),
        (["abc", 3.0, mc.Graph([(0, 1)])], "3.0 at position 1, among strings"),
        ([mc.Tree.of("(a b)"), "(a b)", mc.Tree.of("(a b)")], r"'\(a b\)' at position 1, among trees"),
    ],
)
def test_objects_of_several_kinds_need_a_kernel(X, got):
    with pytest.raises(mc.InvalidInput, match=f"objects of one kind, got {got}"):
        mc.KernelRidge().fit(X, np.arange(3.0))


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def structure():
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    yield mc.plot.Structure.from_object
    plt.close("all")


def test_a_molecule_is_drawn_with_its_bonds(structure):
    picture = structure("CC(=O)[O-]")
    assert (picture.kind, picture.labels) == ("molecule", ["", "", "O", "O⁻"])
    assert picture.lines.tolist() == [1, 2, 1]
    assert len(picture.ax_.lines) == 4
    bonds = np.linalg.norm(np.diff(picture.places[picture.edges], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(bonds, bonds[0], rtol=0.01)
    assert structure("c1ccccc1").lines.sum() == 9
    salt = structure("[Na+].[Cl-]")
    assert salt.labels == ["Na⁺", "Cl⁻"]
    low, high = salt.ax_.get_xlim()
    assert low < salt.places[:, 0].min() < salt.places[:, 0].max() < high
    assert structure("C").labels == ["CH₄"]


def test_a_graph_is_drawn_without_overlaps(structure):
    graph = mc.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (5, 6), (6, 7), (6, 8)], labels="CCNCOABXY")
    picture = structure(graph)
    assert (picture.kind, "".join(picture.labels)) == ("graph", "CCNCOABXY")
    far = np.linalg.norm(picture.places[:, None] - picture.places, axis=2)
    assert (far + np.eye(9)).min() > 0.6
    bonds = far[tuple(picture.edges.T)]
    assert 0.6 < bonds.min() < bonds.max() < 1.4
    assert structure(mc.Graph([], n=1)).places.tolist() == [[0.0, 0.0]]


def test_a_tree_is_drawn_from_the_root(structure):
    picture = structure("(S (NP old dogs) bark)", title="a sentence")
    assert dict(zip(picture.labels, picture.places.tolist())) == {
        "S": [1.25, 0.0], "NP": [0.5, -1.0], "old": [0.0, -2.0], "dogs": [1.0, -2.0], "bark": [2.0, -1.0]
    }  # fmt: skip
    assert picture.ax_.get_title() == "a sentence"
    with pytest.raises(mc.InvalidInput, match="at most 300 nodes, got 401"):
        structure(("a", *"b" * 400))


def test_descriptors_are_those_of_rdkit_in_given_units(tmp_path):
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    phi = mc.Descriptors.of(SMILES)
    expected = np.array([[getattr(Descriptors, name)(m) for name in phi.NAMES] for m in molecules])
    np.testing.assert_allclose(mc.Descriptors()(SMILES), expected)
    np.testing.assert_allclose(phi(molecules), expected / phi.units)
    spread = phi(SMILES).std(axis=0)
    np.testing.assert_allclose(spread[expected.std(axis=0) > 0], 1.0)
    assert phi.units[3] > 0
    kernel = mc.MinMax().after(mc.Fingerprint(counts=True)) + mc.Matern(3.0, 2.5).after(phi)
    assert mc.parse(repr(kernel))(SMILES[:2])[0, 1] == kernel(SMILES[:2])[0, 1]
    model = mc.KernelRidge(kernel, alpha=0.1).fit(SMILES, expected[:, 0])
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mc.load(tmp_path / "m.mercer").predict(SMILES), model.predict(SMILES))
    with pytest.raises(mc.InvalidInput, match=r"got 'C1CC' at position 1"):
        phi(["CCO", "C1CC"])
    for wrong in ((1.0,), (0.0,) * 12, "abc", (float("nan"),) * 12):
        with pytest.raises(mc.InvalidInput, match="12 numbers > 0"):
            mc.Descriptors(wrong)


def test_automatic_models_compare_molecules_also_as_wholes():
    names = suited(SMILES)[1]
    assert any(isinstance(leaf, mc.Matern) for kernel in names.values() for leaf in kernel.leaves)
