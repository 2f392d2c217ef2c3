"""Sizes at which the machines compute in another way. They were measured; results depend on them by rounding only."""

OWN_THREADS = 4000
"""Variables: a larger problem uses all threads by itself; smaller ones are solved side by side."""
SHARED_PREPARATION = 30
"""Problems: with more of them, one is solved first and prepares the points for all others."""
SUMMED_TOGETHER = 12
"""Classes: up to here all pairs are summed over all support vectors; beyond it, each pair over its own."""
WORTH_STORING = 300
"""Columns × passes over the data: from here on the kernel matrix of vectors is computed once and kept, if it fits."""
PSD_POINTS = 1000
"""Points on which a kernel without a proof is checked for negative eigenvalues."""
SPAN_VECTORS = 5000
"""Support vectors: beyond it the span estimate, which factorises their kernel matrix, is left out."""
STAGE_PAIRS = 200_000
"""Pairs of variables moved in one stage of the hard margin, so that no stage runs on while coefficients grow with C."""
