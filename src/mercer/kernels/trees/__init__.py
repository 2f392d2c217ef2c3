"""Kernels on ordered labelled trees: how many fragments two trees have in common.

They differ in what a fragment is: a node with everything below it (`Subtree`), whole productions down to any depth
(`SubsetTree`), or any connected part (`PartialTree`). The last two count the fragments of very large feature spaces by
sums over pairs of nodes, without listing them.
"""
