"""Kernels on graphs: what two graphs have in common, whatever the numbers of their nodes are.

To decide whether two graphs are the same up to the numbering is hard, and a kernel that could tell all graphs apart
would decide it. Each kernel here therefore counts one kind of part: labels of nodes (`histograms`), neighbourhoods of
growing size (`refinement`, the method of Weisfeiler and Lehman), shortest paths (`paths`), small subgraphs
(`graphlets`), common walks (`walks`), attributes spread along edges (`propagation`). The counts do not change if nodes
are renumbered, and apart from walks they are explicit features, so each of these functions is an inner product.
"""
