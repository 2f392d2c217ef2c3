"""Molecules by RDKit: fingerprints against RDKit's own similarities, graphs, and errors with positions."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

import mercer as mc
from everywhere import works_everywhere

SMILES = ["CCO", "CCCO", "CCCCO", "CC(C)O", "OCCO", "CCCCCO", "c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "Oc1ccccc1",
          "Clc1ccccc1", "Cc1ccccc1C"]  # fmt: skip
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
